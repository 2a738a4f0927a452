"""What is not spent where nothing can be verified."""

from types import SimpleNamespace
from typing import Any

import pytest

from sandbox.results import Verdict, VerificationResult
from store.states import AttemptState
from store.tables import Attempt
from workers.attempts import Attempted
from workers.pipeline import next_decision


def attempted(verdict: Verdict | None) -> Attempted:
    attempt = Attempt(task_id=1, decision_id=1, number=1, model="small", state=AttemptState.VERIFIED)
    return Attempted(attempt, None if verdict is None else VerificationResult(verdict, 0.4, (), "", None, None))


@pytest.mark.parametrize(
    ("missing", "verdict", "told"),
    [
        (("The service database is missing.",), "unverified", True),
        (("The service database is missing.",), None, False),  # that model could not be used: the next one may be
        (("The service database is missing.",), "empty", False),
        ((), "unverified", False),
    ],
)
def test_no_second_model_is_paid_where_its_work_could_not_be_verified_either(
    missing: tuple[str, ...], verdict: Verdict | None, told: bool
) -> None:
    notes: list[str] = []
    settings = SimpleNamespace(max_attempts=1)
    run: Any = SimpleNamespace(note=notes.append, task=lambda: None, runtime=SimpleNamespace(settings=settings))
    work: Any = SimpleNamespace(
        environment=SimpleNamespace(missing=missing), source=SimpleNamespace(config=SimpleNamespace(max_attempts=None))
    )
    assert next_decision(run, work, [attempted(verdict)]) is None
    assert bool(notes) is told

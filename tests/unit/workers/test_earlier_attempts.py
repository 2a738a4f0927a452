"""The next model is told what was tried before it, and why that was not enough."""

from sandbox.results import TestReport, VerificationResult
from store.states import AttemptState
from store.tables import Attempt
from workers.attempts import Attempted
from workers.earlier import earlier_attempts


def attempted(
    number: int = 1, *, state: AttemptState = AttemptState.VERIFIED, exit_status: str = "", patch: str = ""
) -> Attempted:
    attempt = Attempt(
        task_id=1, decision_id=1, number=number, model="cheap", state=state, exit_status=exit_status, patch=patch
    )
    after = TestReport("pytest", {"tests/test_a.py::test_old": "failed"}, 1, False, 0.1, "E assert 2 == 3")
    result = VerificationResult(
        "breaking",
        0.0,
        (),
        "The patch breaks 1 test that passed before.",
        None,
        after,
        (),
        ("tests/test_a.py::test_old",),
    )
    return Attempted(attempt, result)


def test_it_is_told_the_verdict_what_broke_and_the_patch() -> None:
    told = earlier_attempts([attempted(patch="--- a/x.py\n+++ b/x.py\n+broken")])
    assert told.startswith("Attempt 1. The patch breaks 1 test that passed before.")
    assert "- tests/test_a.py::test_old" in told
    assert "E assert 2 == 3" in told
    assert "+broken" in told


def test_how_an_agent_was_stopped_is_told_too() -> None:
    told = earlier_attempts([attempted(exit_status="LimitsExceeded"), attempted(2)])
    assert "Attempt 1 ran out of steps." in told
    assert told.index("Attempt 1") < told.index("Attempt 2")


def test_a_model_that_had_no_chance_teaches_the_next_one_nothing() -> None:
    assert earlier_attempts([attempted(state=AttemptState.FAILED)]) == ""


def test_the_first_model_is_told_of_none() -> None:
    assert earlier_attempts([]) == ""


def test_a_long_patch_leaves_room_for_the_task() -> None:
    patch = "\n".join(f"+line {number}" for number in range(10_000))
    told = earlier_attempts([attempted(patch=patch)])
    assert len(told) < 6_000
    assert "+line 9999" in told

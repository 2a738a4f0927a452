"""What a dead worker's attempts teach."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from store.states import TaskState
from workers import pipeline


def test_an_attempt_whose_worker_died_before_it_was_remembered_is_remembered_by_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: Any = SimpleNamespace(publishable=False, name="found")
    remembered: list[Any] = []
    ended: list[TaskState] = []

    @contextmanager
    def prepared(*_: Any) -> Iterator[Any]:
        yield SimpleNamespace(sandboxes=SimpleNamespace(enough=lambda: None))

    monkeypatch.setattr(pipeline, "prepared", prepared)
    monkeypatch.setattr("workers.recovery.attempts_so_far", lambda *_: [found])
    monkeypatch.setattr(pipeline, "next_decision", lambda *_: None)
    monkeypatch.setattr(pipeline, "remember", lambda _run, _work, attempted: remembered.append(attempted))
    monkeypatch.setattr(pipeline, "why_nothing", lambda _: "nothing")
    run: Any = SimpleNamespace(advance=lambda state, _message: ended.append(state))
    pipeline.pipeline(run, SimpleNamespace())
    assert remembered == [found]
    assert ended == [TaskState.NO_FIX]

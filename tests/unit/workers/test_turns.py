"""Tasks of one process in turn: each that is woken is worked on once, and one that crashes costs no turn."""

import pytest

from workers.queues import Turns


def test_a_task_that_is_woken_again_while_it_waits_is_worked_on_once() -> None:
    done: list[int] = []

    def work(task_id: int) -> None:
        done.append(task_id)
        if task_id == 1:
            for woken in (2, 3, 2):  # as by other threads meanwhile
                turns.work(woken)
            assert done == [1]

    turns = Turns(work, 1)
    turns.work(1)
    assert done == [1, 2, 3]


def test_a_task_that_crashes_leaves_its_turn_to_the_next() -> None:
    done: list[int] = []

    def work(task_id: int) -> None:
        done.append(task_id)
        if task_id == 1:
            turns.work(2)
            raise RuntimeError("a bug")

    turns = Turns(work, 1)
    with pytest.raises(RuntimeError):
        turns.work(1)
    turns.work(3)
    assert done == [1, 3, 2]

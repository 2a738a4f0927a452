"""Closes what was under way on a task when its worker was lost or had to end."""

from sqlmodel import Session, select

from store.states import AttemptState
from store.tables import Attempt, Task
from store.types import utc_now
from workers import budgets
from workers.history import note


def write_off(session: Session, task: Task) -> None:
    """Mark the task's running attempts as lost and count its open reservations as spent. Doing it again is harmless.

    Call it where no worker holds the task, or by the one that does.
    """
    assert task.id is not None
    running = session.exec(
        select(Attempt).where(Attempt.task_id == task.id, Attempt.state == AttemptState.RUNNING)
    ).all()
    budgets.assume_open(session, task.id)
    session.flush()
    for attempt in running:
        attempt.state = AttemptState.LOST
        attempt.finished_at = utc_now()
        attempt.cost_usd = budgets.to_usd(budgets.spent_micros(session, attempt_id=attempt.id))
        session.add(attempt)
        note(session, task, f"Attempt {attempt.number} was interrupted.", attempt=attempt.number)

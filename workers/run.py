"""One worker's hold on one task: its lease, its state, and the right to go on."""

from dataclasses import dataclass
from typing import Any

from sandbox.errors import StopRequested
from store.states import TaskState
from store.tables import Task
from workers import budgets, history
from workers.errors import PipelineError
from workers.leases import Lease
from workers.runtime import Runtime


class StoppedByPerson(PipelineError):  # noqa: N818
    """Somebody asked for the end of the task."""


class HandBack(PipelineError):  # noqa: N818
    """This process must end; the task goes back to the queue."""


SHUTTING_DOWN = "The worker is shutting down; the task waits for the next one."


@dataclass(frozen=True)
class Run:
    """What every step of the pipeline is given."""

    runtime: Runtime
    lease: Lease

    @property
    def task_id(self) -> int:
        return self.lease.task_id

    def task(self) -> Task:
        """Return the task as it stands in the database."""
        with self.runtime.database.reading() as session:
            return session.get_one(Task, self.task_id)

    def advance(self, state: TaskState, message: str, **data: Any) -> None:
        """Put the task into `state`, with a sentence for people."""
        with self.lease.transaction() as (session, task):
            history.record(session, task, state, message, **data)

    def note(self, message: str, **data: Any) -> None:
        with self.lease.transaction() as (session, task):
            history.note(session, task, message, **data)

    def update(self, **values: Any) -> Task:
        """Set columns of the task and return it."""
        with self.lease.transaction() as (session, task):
            task.sqlmodel_update(values)
            session.add(task)
        return task

    def spent_usd(self) -> float:
        """Return what the task has cost so far, open reservations included."""
        with self.runtime.database.reading() as session:
            return budgets.to_usd(budgets.spent_micros(session, task_id=self.task_id))

    def check(self) -> None:
        """Make sure that the work may go on.

        Raises:
            StoppedByPerson, HandBack, LeaseLost: it may not.
        """
        with self.lease.transaction() as (_session, task):
            stopped_by = task.stop_requested_by
        if stopped_by:
            raise StoppedByPerson(f"Stopped by {stopped_by}.")
        if self.runtime.stopping.is_set():
            raise HandBack(SHUTTING_DOWN)


@dataclass(frozen=True)
class AttemptMeter:
    """The sandbox's Meter for one attempt: asks for money, and for the right to go on, before each model call."""

    run: Run
    attempt_id: int
    model: str

    def reserve(self, usd: float) -> str:
        try:
            self.run.check()
        except PipelineError as reason:
            raise StopRequested(str(reason)) from reason
        return budgets.reserve(
            self.run.runtime.database,
            self.run.runtime.settings,
            task_id=self.run.task_id,
            attempt_id=self.attempt_id,
            model=self.model,
            usd=usd,
        )

    def settle(self, reservation: str, usd: float) -> None:
        budgets.settle(self.run.runtime.database, reservation, usd)

"""One worker a task: a lease in the database, renewed by a heartbeat, taken over when it runs out."""

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import TracebackType

import structlog
from sqlalchemy import ColumnElement
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import Session, col, or_, select, update

from store.database import Database
from store.states import TaskState
from store.tables import Task
from store.types import utc_now
from workers.errors import LeaseLost

_log = structlog.get_logger(__name__)
# Renewals within one lease: two may fail before it runs out.
_BEATS = 3


class Lease:
    """The right to work on one task, held by one worker."""

    def __init__(self, database: Database, task_id: int, owner: str, seconds: float) -> None:
        self.task_id = task_id
        self.owner = owner
        self._database = database
        self._seconds = seconds
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew_forever, name=f"lease-{task_id}", daemon=True)

    @contextmanager
    def transaction(self) -> Iterator[tuple[Session, Task]]:
        """Yield a session and the task, locked, after making sure that the lease still holds.

        Raises:
            LeaseLost: another worker took the task over; nothing was written.
        """
        with self._database.session() as session:
            # Rows that name the task by a foreign key may be written meanwhile: who writes to the ledger holds that
            # first, and who holds this lock may have to wait for the ledger.
            task = session.exec(select(Task).where(Task.id == self.task_id).with_for_update(key_share=True)).one()
            if task.lease_owner != self.owner:
                raise LeaseLost(f"Task {self.task_id} was taken over by {task.lease_owner or 'nobody'}.")
            yield session, task

    def __enter__(self) -> "Lease":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        with self._database.session() as session:
            session.execute(
                update(Task)
                .where(col(Task.id) == self.task_id, col(Task.lease_owner) == self.owner)
                .values(lease_owner="", lease_until=None)
            )

    def _renew_forever(self) -> None:
        while not self._ended.wait(self._seconds / _BEATS):
            try:
                with self._database.session() as session:
                    renewed = session.execute(
                        update(Task)
                        .where(col(Task.id) == self.task_id, col(Task.lease_owner) == self.owner)
                        .values(lease_until=utc_now() + timedelta(seconds=self._seconds))
                    )
                if renewed.rowcount == 0:  # type: ignore[attr-defined]  # lost: who writes next is told
                    return
            except SQLAlchemyError as error:
                _log.warning("lease.renewal_failed", task_id=self.task_id, error=str(error))


def is_held_by(worker: str) -> ColumnElement[bool]:
    """Return the condition that a task's lease belongs to a worker, by the worker's name."""
    return col(Task.lease_owner).startswith(f"{worker}:", autoescape=True)


def take(database: Database, task_id: int, owner: str, seconds: float) -> Lease | None:
    """Take the lease of a task that is queued and due, or return None where there is nothing to take.

    `owner` names the worker, for people.
    """
    now = utc_now()
    # No two leases share an owner, or a thread that lost its lease would take another's of its process for its own.
    owner = f"{owner}:{uuid.uuid4().hex[:12]}"
    with database.session() as session:
        taken = session.execute(
            update(Task)
            .where(
                col(Task.id) == task_id,
                col(Task.state) == TaskState.QUEUED,
                or_(col(Task.lease_owner) == "", col(Task.lease_until) < now),
                or_(col(Task.not_before).is_(None), col(Task.not_before) <= now),
            )
            .values(
                lease_owner=owner,
                lease_until=now + timedelta(seconds=seconds),
                tries=Task.tries + 1,
                not_before=None,
            )
        )
    return Lease(database, task_id, owner, seconds) if taken.rowcount == 1 else None  # type: ignore[attr-defined]

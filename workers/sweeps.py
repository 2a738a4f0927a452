"""Regular looks at GitHub that heal what its events did not tell: each by one process at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from sqlmodel import col, select, update

from store.database import Database
from store.states import TaskState
from store.tables import Repository, Sweep, Task
from store.types import utc_now
from store.upsert import put
from workers import outcomes
from workers.errors import ForgeError, ForgeTemporary, TargetGone
from workers.onboarding import propose_everywhere
from workers.ports import Forge, RepositoryRef
from workers.runtime import Runtime

_log = structlog.get_logger(__name__)
_BATCH = 20


@dataclass(frozen=True)
class Turn:
    """The right to make one look; it was this process's turn."""

    name: str
    began_at: datetime
    done_until: datetime | None
    """What the last complete look covered; None: there has been none."""


def take_turn(database: Database, name: str, every_s: float) -> Turn | None:
    """Return the turn if it is due, so that no other process has it before `every_s` seconds have passed."""
    _make_known(database, name)
    now = utc_now()
    with database.session() as session:
        taken = session.execute(
            update(Sweep)
            .where(col(Sweep.name) == name, col(Sweep.due_at) <= now)
            .values(due_at=now + timedelta(seconds=every_s))
            .returning(col(Sweep.done_until))
        ).first()
    return Turn(name, now, taken[0]) if taken is not None else None


def complete(database: Database, turn: Turn) -> None:
    """Say that everything up to the turn's beginning has been looked at."""
    with database.session() as session:
        session.execute(update(Sweep).where(col(Sweep.name) == turn.name).values(done_until=turn.began_at))


def release(database: Database, turn: Turn) -> None:
    """End a turn early: the next one is due at once."""
    with database.session() as session:
        session.execute(update(Sweep).where(col(Sweep.name) == turn.name).values(due_at=utc_now()))


def put_off(database: Database, turn: Turn, error: ForgeTemporary) -> None:
    """Have the next turn wait as long as GitHub asks."""
    if error.retry_at is not None:
        with database.session() as session:
            session.execute(update(Sweep).where(col(Sweep.name) == turn.name).values(due_at=error.retry_at))


def sweep(runtime: Runtime) -> None:
    """Look after what is in flight: PRs whose end nobody told, repositories that have been offered nothing yet."""
    forge = runtime.forge
    if forge is None:
        return
    for name, look in (("pulls", _look_at_pulls), ("onboarding", propose_everywhere)):
        turn = take_turn(runtime.database, name, runtime.settings.sweep_every_s)
        if turn is None:
            continue
        try:
            look(runtime, forge)
        except ForgeTemporary as error:
            _log.warning("sweep.waits", sweep=name, error=str(error))
            put_off(runtime.database, turn, error)
        else:
            complete(runtime.database, turn)


def _look_at_pulls(runtime: Runtime, forge: Forge) -> None:
    """Ask about the open PRs of ours that have been quiet longest, a few at a time."""
    for task, repository in _quiet(runtime):
        assert task.id is not None
        assert task.pr_number is not None
        try:
            pull = forge.pull_request(repository, task.pr_number)
        except ForgeTemporary:
            raise
        except TargetGone:
            pull = None
        except ForgeError as error:
            _log.warning("sweep.pull", task_id=task.id, error=str(error))
            pull = None
        if pull is not None and pull.state == "closed":
            outcomes.record_end(runtime.database, task.id, pull)
            runtime.queue.work(task.id)
        else:
            _looked_at(runtime, task.id)


def _quiet(runtime: Runtime) -> Sequence[tuple[Task, RepositoryRef]]:
    before = utc_now() - timedelta(seconds=runtime.settings.sweep_every_s)
    with runtime.database.session() as session:
        rows = session.exec(
            select(Task, Repository)
            .join(Repository, col(Repository.id) == col(Task.repository_id))
            .where(
                Task.state == TaskState.PUBLISHED,
                col(Task.pr_number).is_not(None),
                col(Task.updated_at) < before,
                col(Task.report_due).is_(False),
                col(Repository.active).is_(True),
            )
            .order_by(col(Task.updated_at))
            .limit(_BATCH)
        ).all()
    return [(task, RepositoryRef(row.id, row.installation_id, row.full_name)) for task, row in rows]


def _looked_at(runtime: Runtime, task_id: int) -> None:
    """The quietest come first: one that was looked at goes to the end of the row."""
    with runtime.database.session() as session:
        session.execute(
            update(Task).where(col(Task.id) == task_id, col(Task.report_due).is_(False)).values(updated_at=utc_now())
        )


def _make_known(database: Database, name: str) -> None:
    with database.session() as session:
        put(session, Sweep(name=name, due_at=utc_now()), changing=())

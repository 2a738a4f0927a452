"""What people can do with tasks besides starting them."""

from sqlmodel import col, func, or_, select

from store.database import Database
from store.states import TaskState
from store.tables import Repository, Task
from workers.history import note, record
from workers.interrupted import write_off
from workers.ports import Queue


def latest_task(database: Database, repository_id: int, target_number: int) -> Task | None:
    """Return the newest task on an issue or PR; for a PR that acrouter opened, the task that opened it."""
    with database.reading() as session:
        # One after the other, each by its index: SQLite would go through all tasks of the repository for both at once.
        found = [
            session.exec(
                select(func.max(Task.id)).where(Task.repository_id == repository_id, column == target_number)
            ).one()
            for column in (col(Task.target_number), col(Task.pr_number))
        ]
        newest = max((task_id for task_id in found if task_id is not None), default=None)
        return session.get(Task, newest) if newest is not None else None


def task_asked_about(database: Database, repository_id: int, number: int) -> Task | None:
    """Return the task that words on an issue or PR are about.

    On a PR that acrouter opened that is the newest try of the work behind it, as `/route retry` there begins one,
    unless that has a PR of its own by now.
    """
    found = latest_task(database, repository_id, number)
    if found is None or found.target_number == number:
        return found
    with database.reading() as session:
        newest = session.exec(
            select(func.max(Task.id)).where(
                Task.target == found.target, or_(col(Task.pr_number).is_(None), Task.pr_number == number)
            )
        ).one()
        return session.get(Task, newest)


def request_stop(
    database: Database, queue: Queue, repository_id: int, target_number: int, by: str, *, why: str = ""
) -> Task | None:
    """Ask for the end of the open task on a target and return it, or None where there is none.

    `why` says what the person did where they did not ask for it in words, e.g. `who closed it`.
    A waiting task ends at once; a running one before its next model call, or within seconds
    where a set-up or a verification runs (`workers.stop_watch`).
    """
    # Who closes acrouter's PR ends no new try of the work behind it, which will have another one.
    find = latest_task if why else task_asked_about
    found = find(database, repository_id, target_number)
    return _stop(database, queue, found.id, by, why) if found is not None else None


def stop_where_removed(database: Database, queue: Queue, installation_id: int, by: str) -> None:
    """End the open tasks of an installation's repositories in which the App is not installed any more."""
    left = select(Repository.id).where(Repository.installation_id == installation_id, col(Repository.active).is_(False))
    open_states = [state for state in TaskState if state.is_open]
    with database.reading() as session:
        found = session.exec(
            select(Task.id).where(col(Task.state).in_(open_states), col(Task.repository_id).in_(left))
        ).all()
    for task_id in found:
        _stop(database, queue, task_id, by, "who removed the App")


def _stop(database: Database, queue: Queue, task_id: int | None, by: str, why: str) -> Task | None:
    with database.session() as session:
        task = session.exec(select(Task).where(Task.id == task_id).with_for_update(key_share=True)).one()
        if not task.state.is_open:
            return None
        task.stop_requested_by = by
        if task.state is TaskState.QUEUED:
            task.not_before = None  # its worker is about to let it go; the next one need not wait
        session.add(task)
        if task.state is TaskState.QUEUED and not task.lease_owner:
            write_off(session, task)  # a worker that was lost may have left something open
            record(session, task, TaskState.STOPPED, f"Stopped by {by}{', ' if why else ''}{why}.")
        else:
            note(session, task, f"{by} {why.removeprefix('who ') or 'asked to stop'}.")
    assert task_id is not None
    queue.work(task_id)
    return task

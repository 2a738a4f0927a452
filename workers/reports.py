"""Keeps the words on a task's target level with its state: one status comment, one check run, the labels."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

import structlog
from sqlmodel import col, or_, update

from store.states import TaskKind, TaskState
from store.tables import Repository, Task
from store.types import utc_now
from templates import render
from workers.errors import ForgeError, ForgeTemporary
from workers.ports import CheckRunContent, Conclusion, Forge, RepositoryRef, StateLabel
from workers.runtime import Runtime
from workers.views import TaskView, task_view

_log = structlog.get_logger(__name__)
_PAUSE = timedelta(seconds=10)
"""After GitHub could not answer and did not say when it will."""
_LONG_PAUSE = timedelta(minutes=5)
"""After an error of our own, which will most likely come again."""

_MOST_TRIES = 3

_LABELS: dict[TaskState, StateLabel] = {
    TaskState.PUBLISHED: "review",
    TaskState.MERGED: "merged",
    TaskState.CLOSED: "failed",
    TaskState.NO_FIX: "failed",
    TaskState.FAILED: "failed",
    TaskState.STOPPED: "none",
    TaskState.REFUSED: "failed",
}
_CONCLUSIONS: dict[TaskState, Conclusion] = {
    TaskState.PUBLISHED: "success",
    TaskState.MERGED: "success",
    TaskState.CLOSED: "neutral",
    TaskState.NO_FIX: "neutral",
    TaskState.FAILED: "neutral",
    TaskState.STOPPED: "cancelled",
    TaskState.REFUSED: "neutral",
}


def repository_ref(runtime: Runtime, repository_id: int) -> RepositoryRef:
    """Return the repository as the Forge wants it."""
    with runtime.database.reading() as session:
        row = session.get_one(Repository, repository_id)
        return RepositoryRef(row.id, row.installation_id, row.full_name)


def report(runtime: Runtime, task_id: int) -> None:
    """Write what people see of a task. Writing it again changes nothing.

    One process writes at a time, and looks again when it is done: the newest state is what stays on the target. Where
    another one is at it, this does nothing.

    Raises:
        ForgeTemporary: GitHub cannot take it now; the task stays due for a report.
    """
    if not _claim(runtime, task_id):
        return
    try:
        written: Task | None = None
        while written is None or not _done(runtime, written):
            view = task_view(runtime.database, task_id, runtime.settings, runtime.pool)
            refused = _write(runtime, view)
            written = view.task
        _try_again_later(runtime, written, refused)
    except ForgeTemporary as error:
        _wait_until(runtime, task_id, error.retry_at or utc_now() + _PAUSE)
        raise
    except BaseException:
        _wait_until(runtime, task_id, utc_now() + _LONG_PAUSE)
        raise


def try_report(runtime: Runtime, task_id: int) -> None:
    """Report where that is possible; where it is not, the reconciler reports later. The work goes on either way."""
    try:
        report(runtime, task_id)
    except ForgeTemporary as error:
        _log.warning("report.waits", task_id=task_id, error=str(error))
    except Exception:  # noqa: BLE001  (words that cannot be written must not end the work, nor other tasks' words)
        _log.exception("report.crashed", task_id=task_id)


def _write(runtime: Runtime, view: TaskView) -> list[str]:
    """Write the comment, the check run and the labels, each as far as GitHub lets us; return what it refused."""
    task, forge = view.task, runtime.forge
    refused: list[str] = []
    if forge is None or task.repository_id is None:
        return refused
    repository = repository_ref(runtime, task.repository_id)
    number = task.target_number
    if number is not None:
        with _unless_refused("comment", view, refused):
            body = render("comments/status.md.j2", view=view)
            comment = forge.upsert_status_comment(repository, number, view.marker, body, task.status_comment_id)
            _save(runtime, view, status_comment_id=comment)
    with _unless_refused("check", view, refused):
        _save(runtime, view, check_run_id=_report_check(forge, repository, view))
    if number is not None and task.kind is not TaskKind.CI_FAILURE:
        with _unless_refused("labels", view, refused):
            state: StateLabel = "working" if task.state.is_open else _LABELS[task.state]
            forge.set_state_label(repository, number, state, view.trigger_label)
    return refused


@contextmanager
def _unless_refused(part: str, view: TaskView, refused: list[str]) -> Iterator[None]:
    """Let a refusal that waiting does not help against cost this part alone: a locked issue, a missing permission."""
    try:
        yield
    except ForgeTemporary:
        raise
    except ForgeError as error:
        _log.warning("report.refused", part=part, task_id=view.task.id, error=str(error))
        refused.append(part)


def _report_check(forge: Forge, repository: RepositoryRef, view: TaskView) -> int | None:
    """The check stands on the commit under repair, or, where an issue started it, on the commit that was pushed."""
    task = view.task
    sha = task.head_sha if task.kind is TaskKind.ISSUE else task.base_sha
    if not sha:
        return task.check_run_id
    content = CheckRunContent(
        title=render("checks/title.txt.j2", view=view).strip(),
        summary=render("checks/summary.md.j2", view=view),
        conclusion=None if task.state.is_open else _conclusion(view),
    )
    return forge.upsert_check_run(repository, sha, f"acrouter-task-{task.id}", content, task.check_run_id)


def _conclusion(view: TaskView) -> Conclusion:
    published = view.published
    if view.task.state is TaskState.PUBLISHED and published and published.verification:
        return "success" if published.verification.verdict == "verified" else "neutral"
    return _CONCLUSIONS[view.task.state]


def _save(runtime: Runtime, view: TaskView, **ids: int | None) -> None:
    """Keep what was written, and the right to go on."""
    with runtime.database.session() as session:
        session.execute(
            update(Task).where(col(Task.id) == view.task.id).values(report_not_before=_held_until(runtime), **ids)
        )


def _held_until(runtime: Runtime) -> datetime:
    return utc_now() + timedelta(seconds=runtime.settings.lease_s)


def _claim(runtime: Runtime, task_id: int) -> bool:
    """Take the right to write to a task's target; returns whether it was free.

    It runs out as a lease does, in case this process dies with it.
    """
    now = utc_now()
    with runtime.database.session() as session:
        claimed = session.execute(
            update(Task)
            .where(
                col(Task.id) == task_id,
                or_(col(Task.report_not_before).is_(None), col(Task.report_not_before) <= now),
            )
            .values(report_not_before=_held_until(runtime))
            .returning(col(Task.id))
        ).first()
    return claimed is not None


def _done(runtime: Runtime, written: Task) -> bool:
    """Give the right back, unless the task moved on while we wrote: then there is more to write."""
    with runtime.database.session() as session:
        settled = session.execute(
            update(Task)
            .where(col(Task.id) == written.id, col(Task.updated_at) == written.updated_at)
            .values(report_due=False, report_not_before=None)
            .returning(col(Task.id))
        ).first()
    return settled is not None


def _try_again_later(runtime: Runtime, written: Task, refused: list[str]) -> None:
    """Words that GitHub refused are tried a few times more: it may have been a moment's trouble, or a lock."""
    tries = written.report_tries + 1 if refused else 0
    if not refused and not written.report_tries:
        return
    again = 0 < tries < _MOST_TRIES
    with runtime.database.session() as session:
        session.execute(
            update(Task)
            .where(col(Task.id) == written.id, col(Task.report_due).is_(False))
            .values(
                report_tries=tries if again else 0,
                report_due=again,
                report_not_before=utc_now() + _LONG_PAUSE if again else None,
            )
        )


def _wait_until(runtime: Runtime, task_id: int, moment: datetime) -> None:
    with runtime.database.session() as session:
        session.execute(update(Task).where(col(Task.id) == task_id).values(report_due=True, report_not_before=moment))

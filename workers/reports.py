"""Keeps the words on a task's target level with its state: one status comment, one check run, the labels."""

import structlog
from sqlmodel import col, select, update

from store.states import TaskKind, TaskState
from store.tables import Repository, Task
from templates import render
from workers.errors import ForgeError, TargetGone
from workers.ports import CheckRunContent, Conclusion, Forge, RepositoryRef, StateLabel
from workers.runtime import Runtime
from workers.views import TaskView, task_view

_log = structlog.get_logger(__name__)

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
    with runtime.database.session() as session:
        row = session.get_one(Repository, repository_id)
        return RepositoryRef(row.id, row.installation_id, row.full_name)


_MOST_ROUNDS = 5


def report(runtime: Runtime, task_id: int) -> None:
    """Write what people see of a task. Writing it again changes nothing.

    Where the task moved on meanwhile, another process may have told the newer state before we told the older one: it is
    told again, so that the last words are the newest.

    Raises:
        ForgeTemporary: GitHub cannot take it now; the task stays due for a report.
        ForgeError: GitHub refused it.
    """
    for _ in range(_MOST_ROUNDS):
        if _report_once(runtime, task_id):
            return


def _report_once(runtime: Runtime, task_id: int) -> bool:
    """Tell the state as it stands and return whether it still stands."""
    view = task_view(runtime.database, task_id, runtime.settings, runtime.pool)
    task = view.task
    if runtime.forge is None or task.repository_id is None:
        return _save(runtime, task, None, None)
    repository = repository_ref(runtime, task.repository_id)
    comment_id, check_id = task.status_comment_id, task.check_run_id
    try:
        if task.target_number is not None:
            body = render("comments/status.md.j2", view=view)
            comment_id = runtime.forge.upsert_status_comment(
                repository, task.target_number, view.marker, body, comment_id
            )
            _save_ids(runtime, task, comment_id, check_id)
        check_id = _report_check(runtime.forge, repository, view)
        if task.target_number is not None and task.kind is not TaskKind.CI_FAILURE:
            state = "working" if task.state.is_open else _LABELS[task.state]
            runtime.forge.set_state_label(repository, task.target_number, state)
    except TargetGone as gone:
        _log.info("report.target_gone", task_id=task_id, reason=str(gone))
    return _save(runtime, task, comment_id, check_id)


def try_report(runtime: Runtime, task_id: int) -> None:
    """Report where GitHub lets us; where it does not, the reconciler reports later."""
    try:
        report(runtime, task_id)
    except ForgeError as error:
        _log.warning("report.failed", task_id=task_id, error=str(error))
    except Exception:  # noqa: BLE001  (one task's words must not keep the others from theirs)
        _log.exception("report.crashed", task_id=task_id)


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


def _save_ids(runtime: Runtime, task: Task, comment_id: int | None, check_id: int | None) -> None:
    with runtime.database.session() as session:
        session.execute(
            update(Task).where(col(Task.id) == task.id).values(status_comment_id=comment_id, check_run_id=check_id)
        )


def _save(runtime: Runtime, task: Task, comment_id: int | None, check_id: int | None) -> bool:
    """The task is not due any more, unless it moved on while we wrote: then it is due whoever else has told it."""
    _save_ids(runtime, task, comment_id, check_id)
    with runtime.database.session() as session:
        row = session.exec(select(Task).where(Task.id == task.id).with_for_update()).one()
        row.report_due = row.updated_at != task.updated_at
        session.add(row)
        return not row.report_due

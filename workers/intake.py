"""Starts tasks: at most one open task a target, one task a delivery, and no more than the circuit breaker allows."""

from dataclasses import dataclass
from datetime import timedelta

import structlog
from sqlmodel import Session, col, func, select

from store.database import Database
from store.scrub import scrub
from store.settings import Settings
from store.states import TaskKind, TaskState, Trigger
from store.tables import Task
from store.types import utc_now
from templates.escape import usd
from workers import budgets
from workers.history import record
from workers.locks import take_turn
from workers.ports import Queue

_log = structlog.get_logger(__name__)
_BREAKER_WINDOW = timedelta(hours=24)


@dataclass(frozen=True)
class NewTask:
    """What a trigger knows of the work it asks for."""

    repository_id: int | None
    kind: TaskKind
    trigger: Trigger
    target: str
    """Names the target across all repositories: `42/issues/7`, `42/pull/9`, `42/branch/main`."""
    target_number: int | None
    requested_by: str
    delivery_guid: str | None
    title: str = ""
    text: str = ""
    dimension: str = ""
    """What a person says it is, a word of `routing.types.Dimension`; empty: found in the text."""
    base_ref: str = ""
    base_sha: str = ""
    ci_run_id: int | None = None
    hint: str = ""
    pinned_model: str = ""
    budget_usd: float | None = None
    trigger_key: str | None = None
    """Names what asks for it, e.g. one comment, whichever webhook tells of it."""
    branch: str = ""
    """The branch to make; empty: one of acrouter's own."""


@dataclass(frozen=True)
class Started:
    task_id: int


@dataclass(frozen=True)
class Joined:
    """The target has an open task already; no second one was made."""

    task_id: int


@dataclass(frozen=True)
class Refused:
    """Nothing was started; `reason` is a sentence for the person who asked."""

    reason: str


def start_task(database: Database, queue: Queue, new: NewTask, settings: Settings) -> Started | Joined | Refused:
    """Make a task and wake a worker, unless the target has an open one or a limit forbids it."""
    most = settings.task_budget_usd
    with database.session() as session:
        running = open_task_on(session, new.target)
        answer = _admit(session, new, settings, running)
        if answer is None:
            task = Task(
                repository_id=new.repository_id,
                kind=new.kind,
                trigger=new.trigger,
                target=new.target,
                target_number=new.target_number,
                requested_by=new.requested_by,
                delivery_guid=new.delivery_guid,
                trigger_key=new.trigger_key,
                title=scrub(new.title),
                text=scrub(new.text),
                dimension=new.dimension,
                base_ref=new.base_ref,
                base_sha=new.base_sha,
                ci_run_id=new.ci_run_id,
                hint=scrub(new.hint),
                pinned_model=new.pinned_model,
                branch=new.branch,
                budget_usd=most if new.budget_usd is None else min(new.budget_usd, most),
            )
            session.add(task)
            session.flush()
            assert task.id is not None
            welcome = _welcome(new) + _lowered(new.budget_usd, most)
            record(session, task, TaskState.QUEUED, welcome, trigger=new.trigger, requested_by=new.requested_by)
            answer = Started(task.id)
    if isinstance(answer, Started):
        _log.info("task.asked_for", task_id=answer.task_id, target=new.target, trigger=new.trigger.value)
        queue.work(answer.task_id)
    return answer


def open_task_on(session: Session, target: str) -> int | None:
    """Return the target's open task, or None: then nobody else can give it one before this transaction ends."""
    take_turn(session, f"target:{target}")
    open_states = [state for state in TaskState if state.is_open]
    return session.exec(select(Task.id).where(Task.target == target, col(Task.state).in_(open_states))).first()


def _admit(
    session: Session, new: NewTask, settings: Settings, running: int | None
) -> Started | Joined | Refused | None:
    for column, value in ((Task.delivery_guid, new.delivery_guid), (Task.trigger_key, new.trigger_key)):
        same = session.exec(select(Task.id).where(column == value)).first() if value is not None else None
        if same is not None:
            return Started(same)
    if running is not None:
        return Joined(running)
    recent = session.exec(
        select(func.count())
        .select_from(Task)
        .where(Task.target == new.target, col(Task.created_at) > utc_now() - _BREAKER_WINDOW)
    ).one()
    if recent >= settings.max_tasks_per_target:
        return Refused(
            f"{recent} tasks were started here within 24 hours, which is the limit. "
            "An operator can raise ACROUTER_MAX_TASKS_PER_TARGET."
        )
    return _within_caps(session, new, settings)


def _within_caps(session: Session, new: NewTask, settings: Settings) -> Refused | None:
    for used in budgets.usage(session, settings, repository_id=new.repository_id, requested_by=new.requested_by):
        if used.used_up:
            return Refused(used.cap.refusal())
    return None


def _lowered(asked: float | None, most: float) -> str:
    """Return what to add to the welcome where the task gets less than a person asked for."""
    if asked is None or asked <= most:
        return ""
    return f" Its budget is {usd(most)} in place of {usd(asked)}: an operator can raise ACROUTER_TASK_BUDGET_USD."


def _welcome(new: NewTask) -> str:
    match new.trigger:
        case Trigger.LABEL:
            return f"Asked for by {new.requested_by} with the label."
        case Trigger.COMMAND:
            return f"Asked for by {new.requested_by} with a command."
        case Trigger.CI:
            return "Started by a failed CI run."
        case Trigger.COMMAND_LINE:
            return "Started from the command line."

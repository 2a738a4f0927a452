"""The pipeline of one task: fetch context, route, attempt, verify, escalate, publish, remember."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import structlog
from sqlmodel import select

from routing import RoutingDecision
from routing.errors import NoModelLeft
from sandbox.errors import RemoteUnavailable
from store.errors import AcrouterError
from store.states import TaskState
from store.tables import Attempt, Task
from store.tracing import span
from store.types import utc_now
from workers import attempts, leases, recovery
from workers.attempts import Attempted
from workers.context import Work, prepared
from workers.endings import why_nothing
from workers.errors import ForgeError, ForgeTemporary, LeaseLost, TargetGone
from workers.history import record
from workers.interrupted import write_off
from workers.reports import try_report
from workers.run import HandBack, Run, StoppedByPerson
from workers.runtime import Runtime
from workers.targets import Refusal, Target, TargetClosed, TargetMoved
from workers.wiring import target_of

_log = structlog.get_logger(__name__)

MAX_TRIES = 5
"""Workers that may take one task before it is given up."""
MAX_REFUSED_TRIES = 3
"""Tries that one task makes while GitHub refuses: some refusals are of the moment (a replica that lags, a clock, a
check against abuse), and what was paid for is kept."""
_PAUSE = timedelta(seconds=30)
"""Before a task's second try. Each further pause is four times as long: together they outlast most of GitHub's bad
hours, and what was paid for waits with them."""


def work_on(runtime: Runtime, task_id: int) -> None:
    """Take a queued task and bring it to its end, or to a state from which another worker goes on.

    Does nothing where another worker holds the task, it is not queued, or this process must end.
    """
    if runtime.stopping.is_set():
        return
    lease = leases.take(runtime.database, task_id, runtime.name, runtime.settings.lease_s)
    if lease is None:
        _tell_if_due(runtime, task_id)
        return
    with (
        structlog.contextvars.bound_contextvars(task_id=task_id),
        lease,
        span("task", _delivery_of(runtime, task_id), task_id=task_id),
    ):
        run = Run(runtime, lease)
        try:
            _to_its_end(run)
        except LeaseLost:
            _log.warning("task.lease_lost")
            return
    try_report(runtime, task_id)


def pipeline(run: Run, target: Target) -> None:
    """Work on a task from its words to its PR."""
    if target.adopt(run):
        return
    with prepared(run, target) as work:
        made = recovery.attempts_so_far(run, work)
        for attempted in made:  # the worker that made it may have ended before it could
            remember(run, work, attempted)
        best = recovery.chosen_before(run, made)
        while best is None and (decision := next_decision(run, work, made)) is not None:
            attempted = attempts.make_attempt(run, work, decision, made)
            remember(run, work, attempted)
            made = [*made, attempted]
        work.sandboxes.enough()
        best = best or choose_best(made)
        if best is None:
            run.advance(TaskState.NO_FIX, why_nothing(made))
            return
        target.publish(run, work, best)


def next_decision(run: Run, work: Work, made: Sequence[Attempted]) -> RoutingDecision | None:
    """Route: the first model, or after a failure the next one while it is worth its money; None when it is over."""
    if any(attempted.verified for attempted in made):
        return None
    if work.environment.missing and any(attempted.publishable for attempted in made):
        run.note("No other model is tried, because nothing could be verified of its work either.")
        return None
    config, settings, task = work.source.config, run.runtime.settings, run.task()
    if len(made) >= min(config.max_attempts or settings.max_attempts, settings.max_attempts):
        return None
    if made and (task.pinned_model or config.escalation == "off"):
        return None
    run.advance(TaskState.ROUTING, "Choosing the next model." if made else "Choosing a model.")
    allow, deny = config.models.allow or None, config.models.deny
    left_usd = task.budget_usd - run.spent_usd()
    decision: RoutingDecision | None
    if made:
        # A model that could not be used had no chance; for this task it is as good as one that failed.
        tried = {attempted.attempt.model: attempted.attempt.score or 0.0 for attempted in made}
        decision = run.runtime.brain.escalate(work.routing_task, tried, allow=allow, deny=deny, budget_usd=left_usd)
    else:
        decision = run.runtime.brain.choose(
            work.routing_task,
            pinned=task.pinned_model,
            allow=allow,
            deny=deny,
            budget_usd=left_usd,
            explore=config.exploration == "on",
        )
    if decision is None:
        run.note("No other model is worth its money on this task.")
    return decision


def remember(run: Run, work: Work, attempted: Attempted) -> None:
    """Put the attempt into the memory at once, with the verifier's score until an outcome replaces it.

    One that could not be measured is not learnt from before its outcome (`workers.outcomes`).
    """
    if attempted.teaches:
        evidence = run.runtime.brain.learn(work.routing_task, attempted.attempt)
        with run.lease.transaction() as (session, _task):
            run.runtime.brain.keep(session, evidence)


def choose_best(made: Sequence[Attempted]) -> Attempted | None:
    """Return the attempt to publish: the verified one, else the best of those that broke nothing."""
    candidates = [attempted for attempted in made if attempted.publishable]
    return max(candidates, key=lambda a: (a.verified, a.attempt.score or 0.0, -a.attempt.cost_usd), default=None)


def _to_its_end(run: Run) -> None:
    """Run the pipeline; whatever happens, the task ends in a state that says so, or goes back to the queue."""
    try:
        recovery.clean_up(run)
        run.check()
        pipeline(run, target_of(run))
    except LeaseLost:
        raise
    except StoppedByPerson as stop:
        _end(run, TaskState.STOPPED, str(stop))
    except HandBack as reason:
        _back_to_the_queue(run, str(reason), free_of_charge=True)
    except (TargetClosed, TargetMoved) as reason:
        _end(run, TaskState.STOPPED, str(reason))
    except Refusal as reason:
        _end(run, TaskState.REFUSED, str(reason))
    except (ForgeError, RemoteUnavailable) as reason:
        _ask_again(run, reason)
    except NoModelLeft as reason:
        _end(run, TaskState.NO_FIX if _has_attempts(run) else TaskState.REFUSED, str(reason))
    except AcrouterError as error:
        _log.warning("task.failed", error=str(error))
        _end(run, TaskState.FAILED, str(error))
    except Exception as error:  # noqa: BLE001  (a task must not end in silence)
        _log.exception("task.crashed")
        _end(
            run,
            TaskState.FAILED,
            f"An unexpected error ({type(error).__name__}) ended the task; the operator's log has the details.",
        )


def _ask_again(run: Run, reason: ForgeError | RemoteUnavailable) -> None:
    """GitHub did not do what it was asked for: another worker tries, after a refusal `MAX_REFUSED_TRIES` times."""
    if isinstance(reason, ForgeTemporary | RemoteUnavailable) or run.task().tries < MAX_REFUSED_TRIES:
        _back_to_the_queue(run, str(reason), retry_at=getattr(reason, "retry_at", None))
    else:
        _end(run, TaskState.STOPPED if isinstance(reason, TargetGone) else TaskState.FAILED, str(reason))


def _end(run: Run, state: TaskState, words: str) -> None:
    """End a task early; what was under way is closed."""
    with run.lease.transaction() as (session, task):
        write_off(session, task)
        record(session, task, state, words)


def _delivery_of(runtime: Runtime, task_id: int) -> str | None:
    with runtime.database.reading() as session:
        return session.exec(select(Task.delivery_guid).where(Task.id == task_id)).first()


def _tell_if_due(runtime: Runtime, task_id: int) -> None:
    """An outcome or a stop wakes a task that has nothing to be worked on: only its words are due."""
    with runtime.database.session() as session:
        task = session.get(Task, task_id)
        due = task is not None and task.report_due and not task.state.is_open and not task.lease_owner
    if due:
        try_report(runtime, task_id)


def _back_to_the_queue(
    run: Run, reason: str, *, retry_at: datetime | None = None, free_of_charge: bool = False
) -> None:
    """The next worker goes on from the database. A task is given up after `MAX_TRIES` of them."""
    with run.lease.transaction() as (session, task):
        write_off(session, task)
        if free_of_charge:
            task.tries -= 1  # the task is not to blame for a shutdown
        if task.tries >= MAX_TRIES:
            record(session, task, TaskState.FAILED, f"Given up after {task.tries} tries. The last one: {reason}")
            return
        pause_ends = utc_now() + _PAUSE * 4 ** (task.tries - 1)
        task.not_before = None if free_of_charge else max(retry_at or pause_ends, pause_ends)
        record(session, task, TaskState.QUEUED, reason)


def _has_attempts(run: Run) -> bool:
    with run.runtime.database.session() as session:
        return session.exec(select(Attempt.id).where(Attempt.task_id == run.task_id)).first() is not None

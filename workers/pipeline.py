"""The pipeline of one task: fetch context, route, attempt, verify, escalate, publish, remember."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

import structlog
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as NoConnectionLeft
from sqlmodel import col, select

from routing import RoutingDecision
from routing.errors import NoModelLeft
from sandbox.errors import RemoteRefused, RemoteUnavailable, SandboxUnavailable
from store.errors import AcrouterError
from store.states import TaskKind, TaskState
from store.tables import Attempt, Task
from store.tracing import span
from store.types import utc_now
from workers import attempts, endpoints, leases, recovery
from workers.attempts import Attempted
from workers.context import Work, prepared
from workers.endings import none_answered, why_none_answered, why_nothing
from workers.errors import ForgeError, ForgeTemporary, LeaseLost, NoEndpointAnswers, PipelineError, TargetGone
from workers.history import record
from workers.interrupted import write_off
from workers.reports import try_report
from workers.run import HandBack, Run, StoppedByPerson
from workers.runtime import Runtime
from workers.targets import Refusal, Target, TargetClosed, TargetMoved
from workers.wiring import target_of

_log = structlog.get_logger(__name__)

MAX_TRIES = 5
"""Workers that may be lost with one task before it is given up."""
MAX_REFUSED_TRIES = 3
"""Tries that one task makes while GitHub refuses: some refusals are of the moment (a replica that lags, a clock, a
check against abuse), and what was paid for is kept. The same goes for a database that does not answer."""
_PAUSE = timedelta(seconds=30)
"""Before the second try after a refusal, or while GitHub or the models do not answer. The next ones are longer."""
_LONGEST_PAUSE = timedelta(minutes=30)
LONGEST_WAIT = timedelta(days=1)
"""For GitHub or the models' endpoints to answer again; what was paid for waits with the task."""


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
            if none_answered(made):
                run.advance(TaskState.FAILED, why_none_answered(made))
            else:
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
    counted = _counted(task, made)
    if len(counted) >= min(config.max_attempts or settings.max_attempts, settings.max_attempts):
        return None
    if counted and (task.pinned_model or config.escalation == "off"):
        return None
    run.advance(TaskState.ROUTING, "Choosing the next model." if made else "Choosing a model.")
    unanswered = {a.attempt.model for a in made} - {a.attempt.model for a in counted}
    if not counted:
        return _first_decision(run, work, unanswered)
    # Once one was judged, a model that could not be used is as good as one that failed, for this task.
    tried = {attempted.attempt.model: attempted.attempt.score or 0.0 for attempted in counted}
    resting = {*endpoints.resting(run), *unanswered}
    decision = run.runtime.brain.escalate(
        work.routing_task,
        tried,
        allow=config.models.allow or None,
        deny=config.models.deny,
        resting=resting,
        budget_usd=task.budget_usd - run.spent_usd(),
    )
    if decision is None:
        which = "model whose endpoint answers" if resting else "model"
        run.note(f"No other {which} is worth its money on this task.")
    return decision


def _counted(task: Task, made: Sequence[Attempted]) -> Sequence[Attempted]:
    """Return the attempts that use a task's chances up. Before one is judged, those that no endpoint answered do not:
    the task waits for the endpoints. A person who asked for one model, or waits at the command line, hears at once.
    """
    if any(attempted.judged for attempted in made) or task.pinned_model or task.kind is TaskKind.LOCAL:
        return made
    return [attempted for attempted in made if not attempted.unanswered]


def _first_decision(run: Run, work: Work, unanswered: Collection[str]) -> RoutingDecision:
    """Choose among all models. Those whose endpoints fail are passed over, the `unanswered` of this run among them,
    unless a person asked for one of them, or waits for the answer at the command line.

    Raises:
        NoEndpointAnswers: there are models to choose from, but the endpoints of all of them fail.
        NoModelLeft: no model may be used.
    """
    config, task = work.source.config, run.task()

    def choose(resting: Collection[str]) -> RoutingDecision:
        return run.runtime.brain.choose(
            work.routing_task,
            pinned=task.pinned_model,
            allow=config.models.allow or None,
            deny=config.models.deny,
            resting=resting,
            budget_usd=task.budget_usd - run.spent_usd(),
            explore=config.exploration == "on",
        )

    resting: dict[str, datetime] = {}
    if not (task.pinned_model or task.kind is TaskKind.LOCAL):
        resting = dict.fromkeys(unanswered, utc_now()) | dict(endpoints.resting(run))
    try:
        return choose(resting)
    except NoModelLeft:
        if not resting:
            raise
        usable = choose(())  # raises where it is not for the endpoints that none is left
        # Only what the repository may use: others' models and their endpoints are not for its people.
        failing = {line.model: resting[line.model] for line in usable.ranked if line.model in resting}
        if not failing:
            return usable
        words = f"The endpoints of {', '.join(sorted(failing))} fail; the task waits until one may be tried again."
        raise NoEndpointAnswers(words, min(failing.values())) from None


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
    except HandBack as reason:
        _back_to_the_queue(run, str(reason))
    except (StoppedByPerson, TargetClosed, TargetMoved) as reason:
        _end(run, TaskState.STOPPED, str(reason))
    except Refusal as reason:
        _end(run, TaskState.REFUSED, str(reason))
    except (ForgeTemporary, RemoteUnavailable, NoEndpointAnswers, SandboxUnavailable) as reason:
        _wait(run, str(reason), getattr(reason, "retry_at", None))
    except (ForgeError, RemoteRefused) as reason:
        _ask_again(run, reason)
    except (OperationalError, InterfaceError, NoConnectionLeft) as error:
        # Where it is away still this fails too, and the task comes back when its lease has run out.
        _log.warning("task.database_away", error=str(error))
        _ask_again(run, PipelineError("The database did not answer for a moment."))
    except NoModelLeft as reason:
        made = _attempts(run)
        if none_answered(made):
            _end(run, TaskState.FAILED, f"{why_none_answered(made)} {reason}")
        else:
            _end(run, TaskState.NO_FIX if made else TaskState.REFUSED, str(reason))
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


def _wait(run: Run, reason: str, retry_at: datetime | None) -> None:
    """Something outside does not answer. The task waits for it in the queue, `LONGEST_WAIT` at most; no try counts.

    At the command line nobody would take it up again: a person waits there.
    """
    if run.task().kind is TaskKind.LOCAL:
        _end(run, TaskState.FAILED, reason)
        return
    now = utc_now()
    since = run.task().waiting_since or now
    if now - since >= LONGEST_WAIT:
        _end(run, TaskState.FAILED, f"Given up after waiting since {since:%Y-%m-%d %H:%M} UTC. The last try: {reason}")
        return
    pause = min(max(now - since, _PAUSE), _LONGEST_PAUSE)
    _back_to_the_queue(run, reason, until=min(max(retry_at or now, now + pause), since + LONGEST_WAIT), since=since)


def _ask_again(run: Run, reason: PipelineError | RemoteRefused) -> None:
    """GitHub refused, or the database was away: another worker tries, up to `MAX_REFUSED_TRIES` times.

    At the command line nobody would: a person waits there.
    """
    task = run.task()
    tries = task.tries
    if tries < MAX_REFUSED_TRIES and task.kind is not TaskKind.LOCAL:
        _back_to_the_queue(run, str(reason), until=utc_now() + _PAUSE * 4 ** (tries - 1), counts=True)
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
    run: Run, reason: str, *, until: datetime | None = None, since: datetime | None = None, counts: bool = False
) -> None:
    """The next worker goes on from the database, not before `until`. The try `counts` where the task is to blame.

    What a person wants ended in the meantime waits for nothing.
    """
    with run.lease.transaction() as (session, task):
        write_off(session, task)
        if task.stop_requested_by:
            record(session, task, TaskState.STOPPED, f"Stopped by {task.stop_requested_by}.")
            return
        if not counts:
            task.tries -= 1
        task.not_before = until
        task.waiting_since = since or task.waiting_since
        record(session, task, TaskState.QUEUED, reason)


def _attempts(run: Run) -> Sequence[Attempted]:
    with run.runtime.database.session() as session:
        rows = session.exec(select(Attempt).where(Attempt.task_id == run.task_id).order_by(col(Attempt.number))).all()
        return [Attempted(row, None) for row in rows]

"""One model's work on one task, from the empty sandbox to the verdict, each step kept in the database."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from sqlmodel import select

from routing import RoutingDecision
from routing.records import decision_columns
from sandbox.agent import Agent, CommandLineAgent, Step, run_agent
from sandbox.agent_types import AgentLimits, AgentRun, AgentTask
from sandbox.agreement import EarlierPatch
from sandbox.errors import SandboxUnavailable
from sandbox.results import TestReport, VerificationResult
from sandbox.verdict import SUSPICIOUS_CAP
from sandbox.verify import VerifyRequest, verify
from store.errors import AcrouterError, ConfigurationError
from store.scrub import scrub_json
from store.states import AttemptState, TaskState
from store.tables import Attempt, Decision
from store.tracing import span
from store.types import utc_now
from workers.baselines import key_of
from workers.context import Work
from workers.earlier import earlier_attempts
from workers.endings import unusable
from workers.endpoints import REFUSED, endpoint, is_same_model
from workers.history import record
from workers.judging import judge_for
from workers.reports import try_report
from workers.run import AttemptMeter, Run
from workers.stop_watch import ended_by_a_stop
from workers.trajectories import GrowingTrajectory
from workers.verdicts import verification_row

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Attempted:
    """An attempt with its verdict; `result` is None where there was nothing to verify."""

    attempt: Attempt
    result: VerificationResult | None

    @property
    def verified(self) -> bool:
        return self.result is not None and self.result.verdict == "verified"

    @property
    def publishable(self) -> bool:
        """Nothing broke, there is a change, and it may be applied."""
        return self.result is not None and self.result.verdict in ("verified", "unverified")

    @property
    def unanswered(self) -> bool:
        """The model's endpoint could not be used: the model had no chance."""
        return self.attempt.state is AttemptState.FAILED and self.attempt.exit_status == "ModelError"

    @property
    def unusable(self) -> bool:
        """The model's endpoint could not be used, or did not take the request."""
        refused = self.attempt.state is AttemptState.FAILED and self.attempt.exit_status == REFUSED
        return self.unanswered or refused

    @property
    def judged(self) -> bool:
        """The model had its chance, and its patch has a verdict."""
        return self.attempt.state is AttemptState.VERIFIED

    @property
    def teaches(self) -> bool:
        """The verdict says something about the model; where nothing could be measured, only an outcome will."""
        return self.judged and self.result is not None and self.result.measured


def make_attempt(run: Run, work: Work, decision: RoutingDecision, made: Sequence[Attempted]) -> Attempted:
    """Let the decision's first model work, verify its patch, and return both.

    The model is told of the attempts `made` so far, and the tests' state that they measured is used again.

    Raises:
        StoppedByPerson, HandBack, LeaseLost: the work may not go on; what was paid for is kept.
    """
    attempt = begin(run, decision)
    try_report(run.runtime, run.task_id)
    try:
        with span("attempt", task_id=run.task_id, attempt=attempt.number, model=attempt.model):
            agent_run = _work(run, work, attempt, earlier_attempts(made))
        if agent_run.exit_status == "SandboxError":
            run.runtime.backend.identify(work.sandbox.image)  # was it the daemon?
    except SandboxUnavailable:  # no sandbox can be had now, which says nothing about the model: the attempt is lost
        raise
    except AcrouterError as error:
        finish(run, attempt, _unworkable(error, "SandboxError"))
        raise
    finish(run, attempt, agent_run)
    run.check()
    if attempt.state is AttemptState.FAILED:
        run.note(unusable(attempt))
        return Attempted(attempt, None)
    return verify_attempt(run, work, attempt, made)


def verify_attempt(run: Run, work: Work, attempt: Attempt, made: Sequence[Attempted]) -> Attempted:
    """Judge a finished attempt's patch by the repository's own tests, before and after, and beside those `made`.

    Raises:
        StoppedByPerson, HandBack, LeaseLost: the work may not go on; there is no verdict.
    """
    run.advance(
        TaskState.VERIFYING,
        f"Attempt {attempt.number}: running the tests.",
        attempt=attempt.number,
        model=attempt.model,
    )
    settings = run.runtime.settings
    command = work.test_command.command if work.test_command else ""
    kept = run.runtime.baselines
    key = key_of(work, run.runtime.backend, settings.test_timeout_s)
    before = work.environment.unmeasurable(command) or _baseline(made) or kept.get(key)
    request = VerifyRequest(
        base_sha=work.source.base_sha,
        patch=attempt.patch,
        image=work.sandbox.image,
        test_command=work.test_command,
        setup=work.setup,
        lint=work.source.config.lint,
        task_text=work.source.text,
        dimension=work.routing_task.dimension.value,
        rules=work.rules,
        limits=work.sandbox.limits,
        labels=work.sandbox.labels,
        test_timeout_s=settings.test_timeout_s,
        before=before,
        earlier=_of_other_models(run, attempt, made),
        judge=judge_for(run, work, attempt),
    )
    with span("verify", task_id=run.task_id, attempt=attempt.number, model=attempt.model), ended_by_a_stop(run):
        result = verify(request, work.sandboxes, work.source.mirror)
    if before is None and result.baseline is not None:
        kept.keep(key, result.baseline)
    _judge(run, attempt, result)
    return Attempted(attempt, result)


def _baseline(made: Sequence[Attempted]) -> TestReport | None:
    """The tests' state before any patch, once an attempt has measured it."""
    return next((a.result.baseline for a in made if a.result is not None and a.result.baseline is not None), None)


def _of_other_models(run: Run, attempt: Attempt, made: Sequence[Attempted]) -> Sequence[EarlierPatch]:
    """Patches that nothing speaks against, and that this attempt's model has not made itself."""
    return [
        EarlierPatch(other.attempt.number, other.attempt.model, other.attempt.patch)
        for other in made
        if other.publishable
        and (other.attempt.score or 0.0) > SUSPICIOUS_CAP
        and not is_same_model(run.runtime.pool, other.attempt.model, attempt.model)
    ]


def begin(run: Run, decision: RoutingDecision) -> Attempt:
    """Keep the decision, with all that is needed to judge it later, and begin what it decided."""
    with run.lease.transaction() as (session, task):
        assert task.id is not None
        row = Decision(task_id=task.id, **decision_columns(decision))
        session.add(row)
        session.flush()
        assert row.id is not None
        numbers = session.exec(select(Attempt.number).where(Attempt.task_id == task.id)).all()
        attempt = Attempt(
            task_id=task.id, decision_id=row.id, number=max(numbers, default=0) + 1, model=decision.chosen
        )
        session.add(attempt)
        run.runtime.breakers.tried(session, decision.chosen)
        record(
            session,
            task,
            TaskState.ATTEMPTING,
            f"Attempt {attempt.number}: {decision.chosen} is working.",
            attempt=attempt.number,
            model=decision.chosen,
            propensity=decision.propensity,
            reasons=list(decision.reasons),
        )
        session.flush()
    return attempt


def _work(run: Run, work: Work, attempt: Attempt, previous: str) -> AgentRun:
    settings = run.runtime.settings
    trajectory = GrowingTrajectory()
    assert attempt.id is not None
    try:
        model = endpoint(run, attempt.model)
    except ConfigurationError as error:  # its key is missing: another model may have one
        return _unworkable(error, "ModelError")
    sandbox = work.sandboxes.open(work.sandbox)
    try:
        sandbox.put_tree(work.archive)
        return agent_for(run, attempt.model)(
            AgentTask(
                title=work.source.title,
                text=work.source.text,
                hint=work.hint,
                test_command=work.test_command.told if work.test_command else "",
                notes=work.notes,
                previous=previous,
            ),
            model,
            sandbox,
            AttemptMeter(run, attempt.id, attempt.model),
            AgentLimits(
                steps=settings.step_limit,
                cost_usd=run.task().budget_usd,
                wall_s=settings.attempt_timeout_s,
                command_s=settings.command_timeout_s,
            ),
            on_step=lambda step: _keep_step(run, attempt, step, trajectory),
        )
    finally:
        sandbox.close()


def _unworkable(error: AcrouterError, exit_status: str) -> AgentRun:
    return AgentRun(exit_status, 0, 0, 0, 0.0, "", {}, str(error))


def agent_for(run: Run, model: str) -> Agent:
    """Return what works with a model: mini-swe-agent, unless its entry in the pool names a program."""
    program = run.runtime.pool.get(model).agent
    return CommandLineAgent(program.command, program.environment) if program else run_agent


def _keep_step(run: Run, attempt: Attempt, step: Step, trajectory: GrowingTrajectory) -> None:
    """Keep the trajectory after each step: a killed worker loses nothing that was paid for."""
    so_far = trajectory.scrubbed(step.trajectory())
    with run.lease.transaction() as (session, _task):
        row = session.get_one(Attempt, attempt.id)
        row.steps = step.number
        row.cost_usd = step.cost_usd
        row.trajectory = so_far
        session.add(row)


def finish(run: Run, attempt: Attempt, agent_run: AgentRun) -> None:
    with run.lease.transaction() as (session, task):
        attempt.sqlmodel_update(
            {
                "state": _state_after(agent_run),
                "exit_status": agent_run.exit_status,
                "error": _clean(agent_run.error),
                "steps": agent_run.steps,
                "tokens_in": agent_run.tokens_in,
                "tokens_out": agent_run.tokens_out,
                "cost_usd": agent_run.cost_usd,
                "patch": agent_run.patch,
                "trajectory": _clean(agent_run.trajectory),
                "finished_at": utc_now(),
            }
        )
        merged = session.merge(attempt)
        session.flush()
        session.refresh(merged)
        if agent_run.exit_status == "ModelError":
            run.runtime.breakers.failed(session, attempt.model, agent_run.error, attempt.started_at)
        elif agent_run.exit_status == REFUSED:
            run.runtime.breakers.refused(session, attempt.model, agent_run.error)
        elif attempt.state is AttemptState.FINISHED and agent_run.steps:
            run.runtime.breakers.answered(session, attempt.model)
            task.waiting_since = None  # not sooner: a wait in which each try fails has to end
            session.add(task)
    _log.info("attempt.finished", task_id=run.task_id, model=attempt.model, exit_status=agent_run.exit_status)


def _state_after(agent_run: AgentRun) -> AttemptState:
    """Only what a model ended by itself, or could not end within its limits, is judged."""
    if agent_run.exit_status == "Stopped":
        return AttemptState.LOST
    # A model that never answered, for want of money, a sandbox or a program, had no chance to show anything.
    if agent_run.exit_status in ("ModelError", REFUSED, "SandboxError") or not (agent_run.steps or agent_run.patch):
        return AttemptState.FAILED
    if agent_run.exit_status == "ProgramError" and not agent_run.steps:
        return AttemptState.FAILED
    return AttemptState.FINISHED


def _judge(run: Run, attempt: Attempt, result: VerificationResult) -> None:
    with run.lease.transaction() as (session, _task):
        attempt.state = AttemptState.VERIFIED
        attempt.score = result.score
        session.merge(attempt)
        assert attempt.id is not None
        session.add(verification_row(attempt.id, result))


def _clean(value: Any) -> Any:
    """No secret may stay, and Postgres takes no NUL."""
    return scrub_json(value)

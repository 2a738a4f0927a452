"""What a worker does first with a task that another one may have held: clean up after it, and go on from its work."""

from collections.abc import Sequence

from sqlmodel import col, select

from sandbox.results import Signal, VerificationResult
from store.states import AttemptState
from store.tables import Attempt, Verification
from workers import attempts
from workers.attempts import Attempted
from workers.context import Work
from workers.interrupted import write_off
from workers.run import Run


def clean_up(run: Run) -> None:
    """Remove what a dead worker left: its sandboxes, its running attempts, its open reservations."""
    run.runtime.backend.remove_task(str(run.task_id))
    with run.lease.transaction() as (session, task):
        write_off(session, task)


def attempts_so_far(run: Run, work: Work) -> list[Attempted]:
    """Return the attempts of earlier workers that count; one that was left without a verdict is judged now.

    Where none has a verdict, those that no endpoint answered do not count: the task has waited, and makes them again.
    """
    with run.lease.transaction() as (session, task):
        rows = session.exec(
            select(Attempt, Verification)
            .outerjoin(Verification, col(Verification.attempt_id) == col(Attempt.id))
            .where(Attempt.task_id == task.id, col(Attempt.state) != AttemptState.LOST)
            .order_by(col(Attempt.number))
        ).all()
    made: list[Attempted] = []
    for attempt, verification in rows:
        if attempt.state is AttemptState.FINISHED:
            made.append(attempts.verify_attempt(run, work, attempt, made))
        else:
            made.append(Attempted(attempt, _result(verification) if verification else None))
    return made if any(a.judged for a in made) else [a for a in made if not a.unanswered]


def chosen_before(run: Run, made: Sequence[Attempted]) -> Attempted | None:
    """Return the attempt that an earlier worker began to publish: its branch may be there already."""
    chosen = run.task().published_attempt_id
    return next((attempted for attempted in made if chosen is not None and attempted.attempt.id == chosen), None)


def _result(row: Verification) -> VerificationResult:
    """A stored verdict, without the test reports: those are measured again where they are needed."""
    return VerificationResult(
        verdict=row.verdict,  # type: ignore[arg-type]
        score=row.score,
        signals=tuple(Signal(s["name"], s["value"], s["weight"], s["evidence"]) for s in row.signals),
        summary=row.summary,
        before=None,
        after=None,
        fail_to_pass=tuple(row.tests.get("fail_to_pass", ())),
        pass_to_fail=tuple(row.tests.get("pass_to_fail", ())),
        measured=row.tests.get("measured", True),
    )

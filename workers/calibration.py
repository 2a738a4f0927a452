"""The verifier's scores of published attempts, beside what became of their PRs."""

from dataclasses import dataclass

from sqlmodel import col, select

from routing.outcome_score import final_score
from store.database import Database
from store.states import OutcomeKind
from store.tables import Attempt, Outcome, Task, Verification


@dataclass(frozen=True)
class Judged:
    """One published attempt whose PR has ended."""

    dimension: str
    score: float
    """The verifier's."""
    outcome: float
    """The final score."""
    signals: dict[str, float]
    """Those that could be had."""


def judged_attempts(database: Database) -> list[Judged]:
    """Return the published attempts whose PR was merged, closed or reverted, the oldest first."""
    with database.reading() as session:
        rows = session.exec(
            select(Task.id, Task.dimension, Verification.score, Verification.signals)
            .join(Attempt, col(Attempt.id) == col(Task.published_attempt_id))
            .join(Verification, col(Verification.attempt_id) == col(Attempt.id))
            .order_by(col(Task.id))
        ).all()
        kinds: dict[int, set[OutcomeKind]] = {}
        for of_task, kind in session.exec(select(Outcome.task_id, Outcome.kind)).all():
            kinds.setdefault(of_task, set()).add(OutcomeKind(kind))
    found = []
    for task_id, dimension, score, signals in rows:
        outcome = final_score(kinds.get(task_id or 0, set()))
        if outcome is not None:
            known = {s["name"]: float(s["value"]) for s in signals if s.get("value") is not None}
            found.append(Judged(dimension, score, outcome, known))
    return found

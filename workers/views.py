"""What people are told of a task, gathered from the database for the templates."""

from dataclasses import dataclass

from sqlalchemy.orm import defer
from sqlmodel import col, select

from routing.pool import ModelPool
from store.database import Database
from store.settings import Settings
from store.tables import Attempt, Decision, History, Repository, Task, Verification
from workers import budgets
from workers.configuration import kept
from workers.endings import how_it_ended


@dataclass(frozen=True)
class AttemptView:
    attempt: Attempt
    """Without its trajectory, which can be megabytes."""
    verification: Verification | None
    scripted: bool
    """The model plays a script; it is labelled so wherever it shows."""
    decision: Decision | None = None
    """Why this model, at this point of the task."""

    @property
    def ending(self) -> str:
        """What stopped the agent, e.g. `ran out of steps`; empty where it handed in by itself or is at work."""
        return how_it_ended(self.attempt)


@dataclass(frozen=True)
class TaskView:
    """All that the status comment, the PR's body and the check run tell."""

    task: Task
    repository: str
    """Full name; empty for a local repository."""
    decision: Decision | None
    """The first one: why the first model was chosen."""
    attempts: tuple[AttemptView, ...]
    history: tuple[History, ...]
    spent_usd: float
    web_url: str
    """Where this repository's pages are, without a slash at the end."""
    trigger_label: str
    warnings: tuple[str, ...] = ()
    """Caps that are nearly reached or reached, each with who can raise it."""

    @property
    def marker(self) -> str:
        """The hidden line by which the status comment is found again."""
        return marker(self.task)

    @property
    def parent_sha(self) -> str:
        """What the published commit stands on."""
        return self.task.parent_sha or self.task.base_sha

    @property
    def parent_words(self) -> str:
        """Why it stands there, in sentences; empty where nothing came after the commit that was tested."""
        told = (entry.message for entry in reversed(self.history) if entry.data.get("parent") == self.parent_sha)
        return next(told, "")

    @property
    def published(self) -> AttemptView | None:
        """The attempt whose patch is in the PR."""
        return next((view for view in self.attempts if view.attempt.id == self.task.published_attempt_id), None)


def marker(task: Task) -> str:
    """Return the hidden line that names a task in a comment or a PR's body."""
    return f"<!-- acrouter:task={task.id} -->"


def task_view(database: Database, task_id: int, settings: Settings, pool: ModelPool) -> TaskView:
    """Gather what is known of a task."""
    with database.reading() as session:
        task = session.get_one(Task, task_id)
        repository = session.get(Repository, task.repository_id) if task.repository_id is not None else None
        rows = session.exec(
            select(Attempt, Verification)
            .options(defer(Attempt.trajectory))  # type: ignore[arg-type]
            .outerjoin(Verification, col(Verification.attempt_id) == col(Attempt.id))
            .where(Attempt.task_id == task_id)
            .order_by(col(Attempt.number))
        ).all()
        decisions = session.exec(select(Decision).where(Decision.task_id == task_id).order_by(col(Decision.id))).all()
        history = session.exec(select(History).where(History.task_id == task_id).order_by(col(History.id))).all()
        spent = budgets.spent_micros(session, task_id=task_id)
        config = kept(session, task.repository_id)
        warnings = budgets.warnings(session, settings, task)
    by_id = {decision.id: decision for decision in decisions}
    scripted = {spec.name for spec in pool.models if spec.scripted}
    name = repository.full_name if repository else ""
    return TaskView(
        task=task,
        repository=name,
        decision=decisions[0] if decisions else None,
        attempts=tuple(
            AttemptView(attempt, verification, attempt.model in scripted, by_id.get(attempt.decision_id))
            for attempt, verification in rows
        ),
        history=tuple(history),
        spent_usd=budgets.to_usd(spent),
        web_url=f"{settings.github_web_url.rstrip('/')}/{name}" if name else "",
        trigger_label=config.triggers.label or settings.trigger_label,
        warnings=warnings,
    )

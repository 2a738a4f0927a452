"""What a handler works with."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from store.database import Database
from store.settings import Settings
from store.states import OutcomeKind
from store.tables import Task
from workers.outcomes import record_outcome
from workers.ports import Forge, Queue, RepositoryRef
from workers.runtime import Runtime


@dataclass(frozen=True)
class Context:
    """One delivery in one repository."""

    runtime: Runtime
    forge: Forge
    repository: RepositoryRef
    guid: str

    @property
    def settings(self) -> Settings:
        return self.runtime.settings

    @property
    def database(self) -> Database:
        return self.runtime.database

    @property
    def queue(self) -> Queue:
        return self.runtime.queue

    def target(self, kind: str, name: int | str) -> str:
        """Name a target across all repositories: `42/issues/7`, `42/pull/9`, `42/branch/main`."""
        return f"{self.repository.id}/{kind}/{name}"

    def record_outcome(self, task: Task, kind: OutcomeKind, *, ref: str, at: datetime, data: dict[str, Any]) -> None:
        """Keep an outcome of a task and have its target told at once; see `workers.outcomes.record_outcome`."""
        assert task.id is not None
        if record_outcome(self.database, task.id, kind, ref=ref, at=at, data=data):
            self.queue.work(task.id)

"""Rows that tests about the store and the workers start from."""

from typing import Any

from store.database import Database
from store.settings import Settings
from store.states import TaskKind, Trigger
from store.tables import Attempt, Decision, Installation, Repository, Task
from workers.intake import NewTask


class QueueOfNames:
    """A queue that only remembers what it was asked to wake."""

    def __init__(self) -> None:
        self.deliveries: list[int] = []
        self.tasks: list[int] = []

    def deliver(self, delivery_id: int) -> None:
        self.deliveries.append(delivery_id)

    def work(self, task_id: int) -> None:
        self.tasks.append(task_id)


def settings(**changes: Any) -> Settings:
    """Settings that read nothing from the environment's `.env`."""
    return Settings(**{"_env_file": None, "onboarding": "off"} | changes)


def add_repository(database: Database, repository_id: int = 42, full_name: str = "octo/tools") -> int:
    with database.session() as session:
        session.merge(Installation(id=7, account="octo"))
        session.flush()
        session.merge(Repository(id=repository_id, installation_id=7, full_name=full_name, default_branch="main"))
    return repository_id


def new_task(number: int = 1, **changes: Any) -> NewTask:
    values: dict[str, Any] = {
        "repository_id": 42,
        "kind": TaskKind.ISSUE,
        "trigger": Trigger.LABEL,
        "target": f"42/issues/{number}",
        "target_number": number,
        "requested_by": "maintainer",
        "delivery_guid": None,
    }
    return NewTask(**(values | changes))


def add_task(database: Database, **changes: Any) -> int:
    """A task on issue 1 with a budget of two dollars."""
    add_repository(database)
    values: dict[str, Any] = {
        "repository_id": 42,
        "kind": TaskKind.ISSUE,
        "trigger": Trigger.LABEL,
        "target": "42/issues/1",
        "target_number": 1,
        "budget_usd": 2.0,
    }
    with database.session() as session:
        task = Task(**(values | changes))
        session.add(task)
        session.flush()
        assert task.id is not None
        return task.id


def add_attempt(database: Database, task_id: int, **changes: Any) -> int:
    with database.session() as session:
        decision = Decision(task_id=task_id, chosen="small", propensity=1.0)
        session.add(decision)
        session.flush()
        values: dict[str, Any] = {"task_id": task_id, "decision_id": decision.id, "number": 1, "model": "small"}
        attempt = Attempt(**(values | changes))
        session.add(attempt)
        session.flush()
        assert attempt.id is not None
        return attempt.id

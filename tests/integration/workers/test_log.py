"""A task can be followed in the log by its id, from the webhook on: each state is told once it holds."""

from contextlib import suppress

import structlog
from structlog.testing import capture_logs

from store.database import Database
from store.states import TaskState
from store.tables import Task
from tests.support.rows import QueueOfNames, add_repository, add_task, new_task, settings
from workers.history import record
from workers.intake import Started, start_task


def test_a_webhooks_task_is_named_beside_its_delivery(sqlite_database: Database) -> None:
    add_repository(sqlite_database)
    processors = [structlog.contextvars.merge_contextvars]
    with structlog.contextvars.bound_contextvars(delivery="guid-1"), capture_logs(processors=processors) as logs:
        started = start_task(sqlite_database, QueueOfNames(), new_task(delivery_guid="guid-1"), settings())
    assert isinstance(started, Started)
    assert [(line["event"], line["task_id"], line["delivery"]) for line in logs] == [
        ("task.asked_for", started.task_id, "guid-1")
    ]


def test_a_state_is_logged_once_it_holds(sqlite_database: Database) -> None:
    task_id = add_task(sqlite_database)
    with capture_logs() as logs, sqlite_database.session() as session:
        task = session.get_one(Task, task_id)
        record(session, task, TaskState.PREPARING, "Reading the task.")
        record(session, task, TaskState.PREPARING, "Reading on.")
        assert logs == []
    assert [(line["event"], line["task_id"], line["state"], line["before"]) for line in logs] == [
        ("task.state", task_id, "preparing", "queued")
    ]


def test_a_state_that_never_held_is_not_logged(sqlite_database: Database) -> None:
    task_id = add_task(sqlite_database)
    with capture_logs() as logs, suppress(ConnectionError), sqlite_database.session() as session:
        record(session, session.get_one(Task, task_id), TaskState.FAILED, "It went wrong.")
        raise ConnectionError("and the database is gone")
    assert logs == []

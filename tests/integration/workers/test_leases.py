"""One worker a task: the second one finds it taken, and a worker that lost its lease can write nothing."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import text

from store.database import Database
from store.states import LedgerKind, TaskState
from store.tables import Ledger, Task
from store.types import utc_now
from tests.support.rows import add_task
from tests.support.services import wait_until
from workers import leases
from workers.errors import LeaseLost


def change(database: Database, task_id: int, **values: object) -> None:
    with database.session() as session:
        session.add(session.get_one(Task, task_id).sqlmodel_update(values))


def kept(database: Database, task_id: int) -> Task:
    with database.session() as session:
        return session.get_one(Task, task_id)


def test_only_one_of_many_workers_takes_a_task(database: Database) -> None:
    task_id = add_task(database)
    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(lambda n: leases.take(database, task_id, f"worker-{n}", 60), range(8)))
    assert sum(lease is not None for lease in taken) == 1


def test_a_lease_is_free_again_when_its_holder_is_done(database: Database) -> None:
    task_id = add_task(database)
    lease = leases.take(database, task_id, "first", 60)
    assert lease is not None
    with lease:
        assert leases.take(database, task_id, "second", 60) is None
    assert leases.take(database, task_id, "second", 60) is not None


def test_the_heartbeat_keeps_a_lease_longer_than_its_length(database: Database) -> None:
    task_id = add_task(database)
    lease = leases.take(database, task_id, "first", 3)
    assert lease is not None
    first_end = kept(database, task_id).lease_until
    with lease:
        wait_until(lambda: kept(database, task_id).lease_until != first_end, what="the first beat")
        assert leases.take(database, task_id, "second", 60) is None
        with lease.transaction() as (_session, task):
            assert task.lease_owner == lease.owner


def test_a_worker_that_lost_its_lease_writes_nothing(database: Database) -> None:
    task_id = add_task(database)
    lease = leases.take(database, task_id, "first", 60)
    assert lease is not None
    change(database, task_id, lease_owner="second")
    with pytest.raises(LeaseLost, match="taken over by second"), lease.transaction() as (_session, task):
        task.title = "written by a ghost"
    with database.session() as session:
        assert session.get_one(Task, task_id).title == ""


def test_a_heartbeat_ends_with_its_lease_and_leaves_the_next_one_alone(
    database: Database,
) -> None:
    task_id = add_task(database)
    lease = leases.take(database, task_id, "first", 0.3)
    assert lease is not None
    with lease:
        change(database, task_id, lease_owner="second", lease_until=utc_now() + timedelta(hours=1))
        wait_until(lambda: f"lease-{task_id}" not in [thread.name for thread in threading.enumerate()], what="the end")
    assert kept(database, task_id).lease_owner == "second"


def test_each_worker_that_takes_a_task_is_counted(database: Database) -> None:
    task_id = add_task(database)
    for tries in (1, 2):
        lease = leases.take(database, task_id, "worker", 60)
        assert lease is not None
        with lease:
            assert kept(database, task_id).tries == tries


@pytest.mark.postgres
def test_a_model_call_is_booked_while_the_task_is_locked(postgres_database: Database) -> None:
    task_id = add_task(postgres_database)
    lease = leases.take(postgres_database, task_id, "first", 60)
    assert lease is not None
    with lease.transaction(), postgres_database.session() as booking:
        booking.execute(text("SET LOCAL lock_timeout = '2s'"))
        booking.add(Ledger(reservation="a-call", kind=LedgerKind.RESERVED, usd_micros=1, task_id=task_id))


def test_a_task_that_must_wait_is_not_taken_before_its_time(database: Database) -> None:
    task_id = add_task(database, not_before=utc_now() + timedelta(hours=1))
    assert leases.take(database, task_id, "first", 60) is None
    change(database, task_id, not_before=utc_now() - timedelta(seconds=1))
    assert leases.take(database, task_id, "first", 60) is not None


def test_a_task_that_ended_is_not_taken(database: Database) -> None:
    assert leases.take(database, add_task(database, state=TaskState.STOPPED), "first", 60) is None

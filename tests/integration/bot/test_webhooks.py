"""The webhook endpoint: what is let in, what is stored, and what GitHub hears."""

import asyncio
import errno
import json
import os
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn, cast

import pytest
from fastapi import Request
from fastapi.testclient import TestClient
from sqlalchemy import text
from sqlalchemy.exc import OperationalError
from sqlmodel import select
from starlette.types import Message
from structlog.testing import capture_logs

from bot.errors import NotStoredError
from bot.inbox import arrival
from bot.ingest.group_commit import Ingest
from bot.ingest.sqlite import _Opened
from bot.signature import sign
from bot.web import create_app
from store.database import Database
from store.errors import ConfigurationError
from store.states import DeliveryState
from store.tables import Delivery
from tests.support.rows import QueueOfNames, settings
from tests.support.services import wait_until

SECRET = "a webhook secret"
BODY = json.dumps({"zen": "Keep it logically awesome.", "action": "none"}).encode()


@pytest.fixture
def queue() -> QueueOfNames:
    return QueueOfNames()


@pytest.fixture
def client(database: Database, queue: QueueOfNames) -> Iterator[TestClient]:
    app = create_app(settings(github_webhook_secret=SECRET, max_body_bytes=10_000), database, queue)
    with TestClient(app) as running:
        yield running


def headers(body: bytes, guid: str = "guid-1", changes: dict[str, str | None] | None = None) -> dict[str, str]:
    values: dict[str, str | None] = {
        "X-GitHub-Event": "ping",
        "X-GitHub-Delivery": guid,
        "X-Hub-Signature-256": sign(body, SECRET),
    }
    return {name: value for name, value in (values | (changes or {})).items() if value is not None}


def stored(database: Database) -> list[Delivery]:
    with database.session() as session:
        return list(session.exec(select(Delivery)).all())


def test_a_signed_webhook_is_stored_as_signed_and_wakes_a_worker(
    client: TestClient, database: Database, queue: QueueOfNames
) -> None:
    answer = client.post("/webhooks/github", content=BODY, headers=headers(BODY))
    assert (answer.status_code, answer.json()) == (202, {"status": "accepted"})
    (row,) = stored(database)
    assert (row.guid, row.event, row.action, row.payload, row.state) == (
        "guid-1",
        "ping",
        "none",
        BODY,
        DeliveryState.RECEIVED,
    )
    wait_until(lambda: queue.deliveries == [row.id], what="the wake-up")


def test_the_same_delivery_again_makes_no_work(client: TestClient, database: Database, queue: QueueOfNames) -> None:
    for expected in ("accepted", "duplicate", "duplicate"):
        answer = client.post("/webhooks/github", content=BODY, headers=headers(BODY))
        assert (answer.status_code, answer.json()["status"]) == (202, expected)
    assert len(stored(database)) == 1
    wait_until(lambda: len(queue.deliveries) == 1, what="the wake-up")


def test_of_many_that_arrive_together_each_is_answered_for_itself(
    client: TestClient, database: Database, queue: QueueOfNames
) -> None:
    guids = [f"guid-{number % 20}" for number in range(40)]  # each of them twice

    def send(guid: str) -> str:
        return str(client.post("/webhooks/github", content=BODY, headers=headers(BODY, guid)).json()["status"])

    with ThreadPoolExecutor(20) as senders:
        assert Counter(senders.map(send, guids)) == {"accepted": 20, "duplicate": 20}
    assert Counter(row.guid for row in stored(database)) == Counter(set(guids))
    wait_until(lambda: sorted(queue.deliveries) == sorted(row.id or 0 for row in stored(database)), what="the wake-ups")


@pytest.mark.postgres
def test_a_database_that_was_restarted_costs_no_delivery(postgres_database: Database) -> None:
    with TestClient(create_app(settings(github_webhook_secret=SECRET), postgres_database, QueueOfNames())) as client:
        for guid in ("before", "after"):
            assert client.post("/webhooks/github", content=BODY, headers=headers(BODY, guid)).status_code == 202
            with postgres_database.session() as session:
                others = "datname = current_database() AND pid <> pg_backend_pid()"
                ended = text(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}")  # noqa: S608
                assert session.execute(ended).all()
    assert [row.guid for row in stored(postgres_database)] == ["before", "after"]


@pytest.mark.postgres
def test_a_statement_that_the_server_prepared_before_a_migration_costs_no_delivery(postgres_database: Database) -> None:
    with TestClient(create_app(settings(github_webhook_secret=SECRET), postgres_database, QueueOfNames())) as client:
        for number in range(7):  # it is prepared after the fifth time
            answer = client.post("/webhooks/github", content=BODY, headers=headers(BODY, f"guid-{number}"))
            assert answer.status_code == 202
        with postgres_database.session() as session:
            session.execute(text("ALTER TABLE delivery ALTER COLUMN guid TYPE text"))
        assert client.post("/webhooks/github", content=BODY, headers=headers(BODY, "after")).status_code == 202


@pytest.mark.postgres
def test_a_server_that_does_not_answer_holds_up_no_later_webhook(
    postgres_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with TestClient(create_app(settings(github_webhook_secret=SECRET), postgres_database, QueueOfNames())) as client:
        with postgres_database.session() as session, monkeypatch.context() as patch:
            patch.setattr("bot.ingest.postgres._PATIENCE_S", 0.3)
            session.execute(text("LOCK TABLE delivery IN ACCESS EXCLUSIVE MODE"))
            assert client.post("/webhooks/github", content=BODY, headers=headers(BODY)).status_code == 503
        assert client.post("/webhooks/github", content=BODY, headers=headers(BODY)).status_code == 202


def test_what_cannot_be_stored_is_not_acknowledged(client: TestClient, database: Database, queue: QueueOfNames) -> None:
    def rename(old: str, new: str) -> None:
        with database.session() as session:
            session.execute(text(f"ALTER TABLE {old} RENAME TO {new}"))

    rename("delivery", "elsewhere")
    answer = client.post("/webhooks/github", content=BODY, headers=headers(BODY))
    assert (answer.status_code, answer.json()) == (503, {"detail": "The delivery could not be stored."})
    rename("elsewhere", "delivery")
    assert client.post("/webhooks/github", content=BODY, headers=headers(BODY)).status_code == 202
    wait_until(lambda: len(queue.deliveries) == 1, what="the wake-up")


def test_a_connection_that_cannot_even_be_closed_holds_up_no_later_webhook(sqlite_database: Database) -> None:
    class Dead:
        dialect = property(lambda _self: _gone())

        def close(self) -> None:
            _gone()

    async def story() -> None:
        ingest = Ingest(sqlite_database, lambda _delivery_id: None)
        ingest.start()
        cast("Any", ingest._inbox)._opened = _Opened(cast("Any", Dead()), os.open(os.devnull, os.O_RDONLY))
        with pytest.raises(NotStoredError, match="OperationalError"):
            await asyncio.wait_for(ingest.store(arrival("lost", "ping", BODY)), 20)
        assert await asyncio.wait_for(ingest.store(arrival("kept", "ping", BODY)), 20)
        await ingest.close()
        with pytest.raises(NotStoredError, match="about to end"):
            await ingest.store(arrival("late", "ping", BODY))

    asyncio.run(story())
    assert [row.guid for row in stored(sqlite_database)] == ["kept"]


def _gone() -> NoReturn:
    raise OperationalError("SELECT 1", {}, Exception("the connection is gone"))


def test_what_did_not_reach_the_disk_is_not_acknowledged_before_all_of_it_is_written_again(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken(_descriptor: int) -> None:
        raise OSError(errno.EIO, "the disk is broken")

    with (
        TestClient(create_app(settings(github_webhook_secret=SECRET), sqlite_database, QueueOfNames())) as client,
        closing(sqlite3.connect(sqlite_database.engine.url.database or "")) as worker,
    ):
        worker.execute("SELECT count(*) FROM delivery").fetchone()  # while others are connected, the log is kept
        with monkeypatch.context() as patch:
            patch.setattr("bot.ingest.sqlite._sync", broken)
            assert client.post("/webhooks/github", content=BODY, headers=headers(BODY)).status_code == 503
        assert kept_without_its_log(sqlite_database, tmp_path / "before") == []
        # GitHub delivers it again. It is known, and the log may have a hole in it that no second sync would tell of.
        answer = client.post("/webhooks/github", content=BODY, headers=headers(BODY))
        assert answer.json() == {"status": "duplicate"}
        assert kept_without_its_log(sqlite_database, tmp_path / "after") == ["guid-1"]


def kept_without_its_log(database: Database, copy: Path) -> list[str]:
    """Return what is in a database's file itself, by its guids."""
    shutil.copy(database.engine.url.database or "", copy)
    with closing(sqlite3.connect(copy)) as connection:
        return [guid for (guid,) in connection.execute("SELECT guid FROM delivery")]


def test_each_answer_follows_a_sync_of_the_log(sqlite_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []

    def sync(descriptor: int) -> None:
        os.fsync(descriptor)
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))

    monkeypatch.setattr("bot.ingest.sqlite._sync", sync)
    with TestClient(create_app(settings(github_webhook_secret=SECRET), sqlite_database, QueueOfNames())) as client:
        for number in range(1, 4):
            body_headers = headers(BODY, f"guid-{number}")
            assert client.post("/webhooks/github", content=BODY, headers=body_headers).status_code == 202
            assert synced == [f"{sqlite_database.engine.url.database}-wal"] * number


def test_a_database_that_others_write_to_is_waited_for_while_the_process_goes_on(sqlite_database: Database) -> None:
    with (
        TestClient(create_app(settings(github_webhook_secret=SECRET), sqlite_database, QueueOfNames())) as client,
        ThreadPoolExecutor(1) as sender,
    ):
        with sqlite_database.session() as session:  # it holds the write lock from its beginning
            session.execute(text("SELECT 1"))
            answer = sender.submit(client.post, "/webhooks/github", content=BODY, headers=headers(BODY))
            time.sleep(0.3)
            assert client.get("/healthz").json()["status"] == "ok"
            assert not answer.done()
        assert answer.result(20).status_code == 202


def test_another_method_is_told_which_one_to_use(client: TestClient) -> None:
    answer = client.get("/webhooks/github")
    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"X-Hub-Signature-256": None}, 401),
        ({"X-Hub-Signature-256": "sha256=" + "0" * 64}, 401),
        ({"X-Hub-Signature-256": sign(BODY, "another secret")}, 401),
        ({"X-Hub-Signature-256": sign(BODY + b" ", SECRET)}, 401),
        ({"X-Hub-Signature-256": "sha1=abc"}, 401),
        ({"X-GitHub-Event": None}, 400),
        ({"X-GitHub-Delivery": None}, 400),
        ({"X-GitHub-Delivery": "x" * 101}, 400),
        ({"X-GitHub-Delivery": "a b"}, 400),
    ],
)
def test_what_is_not_from_github_is_refused(
    client: TestClient, database: Database, queue: QueueOfNames, changes: dict[str, str | None], status: int
) -> None:
    answer = client.post("/webhooks/github", content=BODY, headers=headers(BODY, changes=changes))
    assert answer.status_code == status
    assert answer.json()["detail"]
    assert stored(database) == []
    assert queue.deliveries == []


def test_a_secret_that_was_changed_on_one_side_alone_shows_in_the_log_which_strangers_cannot_fill(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1_000.0
    monkeypatch.setattr("bot.webhooks.monotonic", lambda: now)
    changed = {"X-Hub-Signature-256": sign(BODY, "the new secret")}
    with capture_logs() as logs:
        for _ in range(3):
            client.post("/webhooks/github", content=BODY, headers=headers(BODY, changes=dict(changed)))
        now += 60
        client.post("/webhooks/github", content=BODY, headers=headers(BODY, changes=dict(changed)))
    told = [line for line in logs if line["event"] == "webhook.refused"]
    assert [(line["log_level"], line["count"]) for line in told] == [("warning", 1), ("warning", 3)]
    assert "The App's webhook secret and ours must be the same" in told[0]["reason"]


@pytest.mark.parametrize("unsigned", [{"X-Hub-Signature-256": None}, {"X-Hub-Signature-256": ""}])
def test_an_unsigned_webhook_is_told_what_is_not_set_up(client: TestClient, unsigned: dict[str, str | None]) -> None:
    answer = client.post("/webhooks/github", content=BODY, headers=headers(BODY, changes=unsigned))
    assert answer.json()["detail"].endswith("is missing. Set a secret for the App's webhook.")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"nonsense",
        b"[1]",
        b'"text"',
        b"\xff\xfe",
        b"payload=%7B%7D",
        b"[" * 9000,
        b'{"issue":' + b"[" * 9000,
        b'{"issue": "\xff"}',
        b'{"issue": 1} 2',
    ],
)
def test_a_body_that_is_no_json_object_is_refused(client: TestClient, database: Database, body: bytes) -> None:
    answer = client.post("/webhooks/github", content=body, headers=headers(body))
    assert answer.status_code == 400
    assert stored(database) == []


def test_a_body_over_the_limit_is_refused_by_its_length(client: TestClient, database: Database) -> None:
    body = b"{" + b" " * 10_000 + b"}"
    assert client.post("/webhooks/github", content=body, headers=headers(body)).status_code == 413
    assert stored(database) == []


@pytest.mark.parametrize(
    ("announced", "pieces"),
    [
        pytest.param({"Content-Length": "10001"}, 0, id="a body that says how long it is"),
        pytest.param({}, 11, id="a body that goes on and on"),
    ],
)
def test_no_more_of_a_body_is_read_than_it_takes_to_refuse_it(
    sqlite_database: Database, announced: dict[str, str], pieces: int
) -> None:
    app = create_app(settings(github_webhook_secret=SECRET, max_body_bytes=10_000), sqlite_database, QueueOfNames())
    told = headers(BODY) | announced
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/webhooks/github",
        "headers": [(name.lower().encode(), value.encode()) for name, value in told.items()],
    }
    read = 0
    answers: list[Message] = []

    async def receive() -> Message:
        nonlocal read
        read += 1
        return {"type": "http.request", "body": b" " * 1000, "more_body": read < 100}

    async def send(message: Message) -> None:
        answers.append(message)

    asyncio.run(app(scope, receive, send))
    assert answers[0]["status"] == 413
    assert read == pieces
    assert stored(sqlite_database) == []


def test_an_odd_action_is_stored_as_any_database_can(client: TestClient, database: Database) -> None:
    for number, action in enumerate(["nul \x00", "x" * 500, 7, None, {"a": 1}]):
        body = json.dumps({"action": action}).encode()
        assert client.post("/webhooks/github", content=body, headers=headers(body, f"g{number}")).status_code == 202
    assert len(stored(database)) == 5


def test_a_queue_that_is_down_loses_nothing(database: Database) -> None:
    class Broken(QueueOfNames):
        def deliver(self, delivery_id: int) -> None:
            raise ConnectionError("no broker")

    with TestClient(create_app(settings(github_webhook_secret=SECRET), database, Broken())) as client:
        assert client.post("/webhooks/github", content=BODY, headers=headers(BODY)).status_code == 202
    assert len(stored(database)) == 1


@pytest.mark.parametrize(("sender", "scheme"), [("127.0.0.1", "https"), ("::1", "https"), ("203.0.113.7", "http")])
def test_a_proxy_is_believed_where_it_is_the_hosts_own(database: Database, sender: str, scheme: str) -> None:
    app = create_app(settings(github_webhook_secret=SECRET), database, QueueOfNames())

    @app.get("/whence")
    async def whence(request: Request) -> dict[str, str]:
        return {"scheme": request.url.scheme}

    with TestClient(app, client=(sender, 50_000)) as client:
        assert client.get("/whence", headers={"X-Forwarded-Proto": "https"}).json() == {"scheme": scheme}


def test_health_tells_of_the_database(client: TestClient) -> None:
    assert client.get("/healthz").json() == {"status": "ok", "database": "ok"}
    assert client.get("/").json()["name"] == "acrouter"


def test_without_a_secret_nothing_starts(database: Database) -> None:
    with pytest.raises(ConfigurationError, match="ACROUTER_GITHUB_WEBHOOK_SECRET"):
        create_app(settings(), database, QueueOfNames())

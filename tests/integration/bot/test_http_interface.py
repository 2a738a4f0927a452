"""The HTTP interface under generated requests: the right status for each, and work only for what GitHub signed."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, cast

import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, settings
from sqlmodel import select

from bot.dashboard.api import make_api
from bot.dashboard.board import Board
from bot.dashboard.tokens import create_token
from bot.signature import sign
from bot.web import create_app
from store.database import Database
from store.tables import Delivery
from tests.support.rows import QueueOfNames
from tests.support.rows import settings as make_settings

SECRET = "a webhook secret"
_TEXT = {"type": "string"}
_ANSWERS = {
    "202": {"description": "stored, or known already"},
    "400": {"description": "no delivery of GitHub's"},
    "401": {"description": "not signed, or wrongly"},
    "405": {"description": "another method"},
    "413": {"description": "too large"},
}
DESCRIPTION: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "acrouter", "version": "1"},
    "paths": {
        "/healthz": {"get": {"responses": {"200": {"description": "well"}, "503": {"description": "not well"}}}},
        "/": {"get": {"responses": {"200": {"description": "who this is"}}}},
        "/webhooks/github": {
            "post": {
                "parameters": [
                    {"name": name, "in": "header", "required": False, "schema": _TEXT}
                    for name in ("X-GitHub-Event", "X-GitHub-Delivery", "X-Hub-Signature-256")
                ],
                "requestBody": {"content": {"application/json": {"schema": {}}}},
                "responses": _ANSWERS,
            }
        },
    },
}
schema = schemathesis.openapi.from_dict(DESCRIPTION)
# The JSON API describes itself; its board is needed by requests alone.
api = schemathesis.openapi.from_dict(make_api(cast("Board", None)).openapi())


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TestClient, Database]]:
    from store import migrations

    database = Database(f"sqlite:///{tmp_path_factory.mktemp('http') / 'acrouter.sqlite3'}")
    migrations.upgrade(database)
    app = create_app(make_settings(github_webhook_secret=SECRET, max_body_bytes=20_000), database, QueueOfNames())
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client, database
    database.dispose()


def stored(database: Database) -> int:
    with database.session() as session:
        return len(session.exec(select(Delivery.id)).all())


@schema.parametrize()
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_generated_requests_get_a_described_answer_and_start_nothing(
    served: tuple[TestClient, Database], case: "schemathesis.Case[Any]"
) -> None:
    client, database = served
    before = stored(database)
    sent = case.as_transport_kwargs(base_url="http://testserver")
    headers = {name: str(value) for name, value in (sent.get("headers") or {}).items() if str(value).isascii()}
    content = json.dumps(sent["json"], default=str).encode() if sent.get("json") is not None else b""
    answer = client.request(case.method, case.path, headers=headers, content=content)
    assert answer.status_code in {200, 400, 401, 405, 413}, (answer.status_code, answer.text)
    assert stored(database) == before, "nothing here was signed"


@pytest.fixture(scope="module")
def reader(served: tuple[TestClient, Database]) -> dict[str, str]:
    return {"Authorization": f"Bearer {create_token(served[1], 'reader', ['read'], by='ada')}"}


@api.parametrize()
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_api_answers_whatever_it_is_asked_and_only_to_those_who_may_read(
    served: tuple[TestClient, Database], reader: dict[str, str], case: "schemathesis.Case[Any]"
) -> None:
    client, _ = served
    path = f"/api/v1{case.formatted_path}"
    for headers, statuses in ((reader, {200, 400, 404, 405, 422}), ({}, {401, 404, 405, 422})):
        answer = client.request(case.method, path, params=case.query, headers=headers, follow_redirects=False)
        assert answer.status_code in statuses, (case.method, path, case.query, answer.status_code, answer.text)


def post(
    client: TestClient, body: bytes, guid: str, event: str = "ping", changes: dict[str, str | None] | None = None
) -> int:
    headers: dict[str, str | None] = {
        "X-GitHub-Event": event,
        "X-GitHub-Delivery": guid,
        "X-Hub-Signature-256": sign(body, SECRET),
        **(changes or {}),
    }
    kept = {name: value for name, value in headers.items() if value is not None}
    return client.post("/webhooks/github", content=body, headers=kept).status_code


@pytest.mark.parametrize(
    ("body", "changes", "status"),
    [
        (b"{" + b" " * 20_000 + b"}", {}, 413),
        (b"{}", {"X-Hub-Signature-256": "sha256=" + "0" * 64}, 401),
        (b"{}", {"X-Hub-Signature-256": None}, 401),
        (b"{", {}, 400),
        (b'{"a":' * 3000 + b"1" + b"}" * 3000, {}, 400),
        (b"[" * 9000 + b"]" * 9000, {}, 400),
    ],
    ids=["too large", "wrongly signed", "unsigned", "malformed", "deeply nested", "nested lists"],
)
def test_what_is_no_delivery_gets_its_status_and_no_work(
    served: tuple[TestClient, Database], body: bytes, changes: dict[str, str | None], status: int
) -> None:
    client, database = served
    before = stored(database)
    assert post(client, body, "odd", changes=changes) == status
    assert stored(database) == before


def test_an_unknown_event_is_kept_and_a_replay_after_a_day_makes_no_second_row(
    served: tuple[TestClient, Database],
) -> None:
    client, database = served
    before = stored(database)
    assert post(client, b"{}", "old-guid", "no_such_event") == 202
    with database.session() as session:
        row = session.exec(select(Delivery).where(Delivery.guid == "old-guid")).one()
        row.received_at -= timedelta(days=1)
        session.add(row)
    assert post(client, b"{}", "old-guid", "no_such_event") == 202
    assert stored(database) == before + 1

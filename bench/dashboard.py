"""`acrouter bench dashboard`: how long the server takes for each page, on a large past, on SQLite and on Postgres.

112,000 tasks make 250,000 attempts and a million rows of the ledger, spread over a year (`bench.dashboard_data`). Each
page is asked for in one process, over ASGI, with a session of somebody who sees everything, as a browser would ask:
the time from the request to the last byte of the answer, of a CSV to the first one. The first look, which reads the
facts, is not counted and is shown apart. Before each request a task changes and a call is paid, as on a busy day, and
the page has to take that in.

    dashboard.{sqlite,postgres}.p95_ms        the slowest page's 95th percentile
    dashboard.{sqlite,postgres}.overview_ms   the 95th percentile of the overview, its longest period included

Both pasts are made anew and thrown away. `ACROUTER_BENCH_POSTGRES` names a Postgres server, e.g.
`postgresql://postgres@localhost/postgres`; without it only SQLite is measured, and that is said.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Mapping, MutableMapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

from fastapi import FastAPI
from rich.console import Console
from rich.table import Table
from sqlmodel import col, select

from bench.dashboard_data import Scale, fill
from bench.postgres import SETTING, server_url, throwaway_database
from store import migrations
from store.database import Database
from store.settings import Settings
from store.states import LedgerKind, TaskState
from store.tables import Ledger, Task
from store.types import utc_now

TASKS = 112_000
ROUNDS = 20
CSV = ("/export/tasks.csv", "/export/ledger.csv", "/export/models.csv?days=365")
PAGES = (
    "/overview",
    "/overview?days=90",
    "/overview?days=365",
    "/models",
    "/models?days=365",
    "/tasks",
    "/tasks?text=refund",
    "/tasks?text=cart+empty&state=merged",
    "/tasks?text=nowhere",
    "/tasks?repository=octo/shop&since=2026-01-01",
    "/tasks?model=huge&dimension=algorithm&person=ada",
    "/tasks?before=50000",
    "/tasks/77777",
    "/tasks/77777/attempts/1/steps",
    "/budgets",
    "/budgets?before=500000",
    "/queue",
    "/numbers",
    "/api/v1/overview?days=365",
    "/api/v1/models?days=365",
    "/api/v1/tasks?text=refund&limit=200",
    "/api/v1/tasks/77777",
    "/api/v1/budgets",
    "/api/v1/queue",
    *CSV,
)


def run(console: Console) -> dict[str, float]:
    """Measure and print, and return the figures by their names."""
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="acrouter-dashboard-") as made, ExitStack() as databases:
        folder = Path(made)
        urls = {"sqlite": f"sqlite:///{folder / 'past.sqlite3'}"}
        if server := server_url():
            urls["postgres"] = databases.enter_context(throwaway_database(server))
        else:
            console.print(f"Postgres is not measured: {SETTING} names no server.")
        for name, url in urls.items():
            times = measure(console, name, url, folder, tasks=TASKS, rounds=ROUNDS)
            figures[f"dashboard.{name}.p95_ms"] = max(percentile(one) for one in times.values())
            figures[f"dashboard.{name}.overview_ms"] = max(
                percentile(one) for page, one in times.items() if page.startswith("/overview")
            )
    return figures


def measure(console: Console, name: str, url: str, folder: Path, *, tasks: int, rounds: int) -> dict[str, list[float]]:
    """Return each page's times in milliseconds; the past is made in an empty database."""
    from fastapi.testclient import TestClient
    from pydantic import SecretStr

    from bot.dashboard.tokens import make_link_word
    from bot.web import create_app

    database = Database(url)
    migrations.upgrade(database)
    with console.status(f"{name}: making a past of {tasks} tasks"):
        started = time.perf_counter()
        fill(database, Scale(tasks))
    console.print(f"{name}: a past of {tasks} tasks took {time.perf_counter() - started:.0f} s to make.")
    settings = Settings(_env_file=None, data_dir=folder, github_webhook_secret=SecretStr("x" * 32))
    started = time.perf_counter()
    app = create_app(settings, database, _NoQueue())
    app.state.board.facts.max_age_s = 0.0
    browser = TestClient(app, base_url="http://127.0.0.1", headers={"accept": "text/html"})
    browser.post("/sign-in/link", data={"word": make_link_word(database)})
    browser.get("/overview")
    console.print(f"{name}: the first look, which reads the facts, took {time.perf_counter() - started:.1f} s.")
    times: dict[str, list[float]] = {page: [] for page in PAGES}
    for _ in range(rounds):
        for page in PAGES:
            _work_goes_on(database)
            if page in CSV:
                times[page].append(asyncio.run(first_byte_ms(app, page, browser.cookies)))
                continue
            started = time.perf_counter()
            answer = browser.get(page)
            times[page].append((time.perf_counter() - started) * 1000)
            assert answer.status_code == 200, f"{page}: {answer.status_code}"
    console.print(_table(name, times))
    database.dispose()
    return times


def _work_goes_on(database: Database) -> None:
    """Change the newest task, and pay for a call of it."""
    with database.session() as session:
        task = session.exec(select(Task).order_by(col(Task.id).desc()).limit(1)).one()
        assert task.id is not None
        task.tries += 1
        task.state = TaskState.ATTEMPTING if task.tries % 2 else TaskState.VERIFYING
        task.updated_at = utc_now()
        session.add(task)
        paid = Ledger(
            reservation=uuid4().hex,
            closing=True,
            kind=LedgerKind.SETTLED,
            usd_micros=1000,
            task_id=task.id,
            model="nano",
        )
        session.add(paid)


async def first_byte_ms(app: FastAPI, path: str, cookies: Mapping[str, str]) -> float:
    """Return the milliseconds until an answer's first byte, and ask for no more of it."""
    route, _, query = path.partition("?")
    cookie = "; ".join(f"{name}={value}" for name, value in cookies.items())
    headers = [(b"host", b"127.0.0.1"), (b"accept", b"text/html"), (b"cookie", cookie.encode())]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": route,
        "raw_path": route.encode(),
        "query_string": query.encode(),
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    came = asyncio.Event()

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    async def send(message: MutableMapping[str, Any]) -> None:
        assert message.get("status", 200) == 200, f"{path}: {message}"
        if message.get("body"):
            came.set()

    started = time.perf_counter()
    answering = asyncio.ensure_future(app(scope, receive, send))
    waiting = asyncio.ensure_future(came.wait())
    await asyncio.wait({answering, waiting}, return_when=asyncio.FIRST_COMPLETED)
    took = (time.perf_counter() - started) * 1000
    assert came.is_set(), f"{path}: no answer"
    answering.cancel()
    await asyncio.gather(answering, return_exceptions=True)
    return took


def percentile(values: list[float], share: int = 95) -> float:
    """Return a percentile of at least two values."""
    return statistics.quantiles(values, n=100, method="inclusive")[share - 1]


def _table(name: str, times: dict[str, list[float]]) -> Table:
    table = Table("page", "median ms", "p95 ms", title=f"{name}: server time a page", title_justify="left")
    for page, values in times.items():
        table.add_row(page, f"{statistics.median(values):.1f}", f"{percentile(values):.1f}")
    return table


class _NoQueue:
    """Nothing is woken: the past is past."""

    def deliver(self, delivery_id: int) -> None: ...

    def work(self, task_id: int) -> None: ...

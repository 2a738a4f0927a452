"""A made-up past for the dashboard: tasks, decisions, attempts, ledger, written by the thousand, the same each time.

The models' true success is known, so that a person can check what the pages say of it: `MODELS`, and a fifth less where
the dimension is hard.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Table
from sqlmodel import SQLModel

from bench import bulk
from store.database import Database
from store.states import AttemptState, LedgerKind, OutcomeKind, TaskKind, TaskState, Trigger
from store.tables import (
    Attempt,
    Decision,
    Heartbeat,
    History,
    Installation,
    Ledger,
    MemoryEntry,
    Outcome,
    Repository,
    Task,
    Verification,
)
from store.types import utc_now

MODELS = {"nano": (0.20, 0.02), "small": (0.38, 0.09), "large": (0.52, 0.45), "huge": (0.66, 1.10)}
"""Chance to solve a task, and mean cost in US dollars."""
DIMENSIONS = ("bug_fixing", "code_generation", "test_generation", "code_refactoring", "algorithm")
_HARD = ("algorithm", "code_refactoring")
PEOPLE = ("ada", "grace", "linus", "barbara", "edsger", "margaret")
REPOSITORIES = tuple((100 + n, f"octo/{name}") for n, name in enumerate(("shop", "tools", "site", "api", "docs")))
_TABLES = (Task, Decision, Attempt, Verification, Outcome, History, Ledger, MemoryEntry)
"""Parents before children."""
_AT_ONCE = 2000
_NOTHING: dict[str, Any] = {}
_NOTHING_LISTED: list[Any] = []
_TITLES = (
    "Crash when the cart is empty",
    "Wrong total after a refund",
    "Add a test for the parser",
    "Dates off by a day",
)
_PATCH = (
    "diff --git a/shop/cart.py b/shop/cart.py\n--- a/shop/cart.py\n+++ b/shop/cart.py\n@@ -1,2 +1,2 @@\n-old\n+new\n"
)


@dataclass(frozen=True)
class Scale:
    """How much to write. Attempts and ledger rows follow: about 2.5 and 10 a task."""

    tasks: int
    days: int = 365


@dataclass
class _Rows:
    """Rows by table until there are enough to write."""

    connection: Connection
    waiting: dict[type[SQLModel], list[dict[str, Any]]]

    def add(self, table: type[SQLModel], **values: Any) -> None:
        self.waiting.setdefault(table, []).append(values)

    def write(self) -> None:
        for table in _TABLES:
            bulk.write(self.connection, _columns_of(table), self.waiting.pop(table, []))


def fill(
    database: Database, scale: Scale, *, seed: int = 1, begins: datetime | None = None, lasts: timedelta | None = None
) -> None:
    """Fill an empty, migrated database with a past that ends now, or with one of another time."""
    dice = random.Random(seed)  # noqa: S311  (made-up data)
    now = utc_now()
    begins, lasts = begins or now - timedelta(days=scale.days), lasts or timedelta(days=scale.days)
    with database.session() as session:
        session.add(Installation(id=7, account="octo"))
        session.flush()
        for identity, name in REPOSITORIES:
            session.add(Repository(id=identity, installation_id=7, full_name=name, default_branch="main"))
        session.add(Heartbeat(name="worker-1", role="worker", seen_at=now))
    ids = _Ids()
    with bulk.loading(database, [_columns_of(table) for table in _TABLES]) as connection:
        for start in range(0, scale.tasks, _AT_ONCE):
            rows = _Rows(connection, {})
            for number in range(start, min(scale.tasks, start + _AT_ONCE)):
                at = begins + lasts * (number / scale.tasks)
                _task(rows, ids, dice, at)
            rows.write()
    if not database.is_sqlite:
        with database.engine.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT")
            for table in ("task", "attempt", "decision", "ledger", "history", "outcome", "verification", "memoryentry"):
                connection.exec_driver_sql(
                    f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), (SELECT max(id) FROM {table}))"  # noqa: S608
                )
            connection.exec_driver_sql("VACUUM ANALYZE")
    else:
        with database.engine.connect() as connection:
            connection.exec_driver_sql("ANALYZE")
            connection.commit()


def _columns_of(table: type[SQLModel]) -> Table:
    return SQLModel.metadata.tables[str(table.__tablename__)]


class _Ids:
    def __init__(self) -> None:
        self._last: dict[str, int] = {}

    def next(self, table: str) -> int:
        self._last[table] = self._last.get(table, 0) + 1
        return self._last[table]


def _shares(dice: random.Random, hard: bool) -> dict[str, float]:
    """The router's chances: the dear model rather for what is hard."""
    easy_ones = {"nano": 0.25, "small": 0.45, "large": 0.2, "huge": 0.1}
    raw = easy_ones if not hard else {"nano": 0.1, "small": 0.3, "large": 0.35, "huge": 0.25}
    noise = {model: share * dice.uniform(0.8, 1.2) for model, share in raw.items()}
    total = sum(noise.values())
    return {model: share / total for model, share in noise.items()}


def _task(rows: _Rows, ids: _Ids, dice: random.Random, at: datetime) -> None:
    task_id = ids.next("task")
    repository, name = dice.choice(REPOSITORIES)
    dimension = dice.choice(DIMENSIONS)
    hard = dimension in _HARD
    title = f"{dice.choice(_TITLES)} ({task_id})"
    shares = _shares(dice, hard)
    order = dice.choices(list(shares), list(shares.values()))
    order += sorted((model for model in MODELS if model not in order), key=lambda model: MODELS[model][1])
    clock, solved, published = at + timedelta(seconds=20), False, None
    for number, model in enumerate(order, start=1):
        attempt = _attempt(rows, ids, dice, task_id, repository, number, model, hard, shares, clock)
        clock += timedelta(seconds=dice.uniform(60, 400))
        solved = dice.random() < MODELS[model][0] * (0.8 if hard else 1.0)
        # A failed verification escalates; one that only looked good is found out by its reviewers.
        if solved or number == len(order) or dice.random() < 0.05:
            published = attempt if solved or dice.random() < 0.4 else None
            break
    state = TaskState.NO_FIX if published is None else TaskState.MERGED if solved else TaskState.CLOSED
    if published is not None and utc_now() - clock < timedelta(days=2) and dice.random() < 0.5:
        state = TaskState.PUBLISHED
    opened = published is not None
    rows.add(
        Task,
        id=task_id,
        repository_id=repository,
        kind=TaskKind.ISSUE,
        trigger=Trigger.LABEL,
        target=f"{repository}/issues/{task_id}",
        target_number=task_id,
        requested_by=dice.choice(PEOPLE),
        delivery_guid=None,
        title=title,
        text=f"{title}. It happens since the last release. " * 8,
        dimension=dimension,
        language="python",
        base_ref="main",
        base_sha=f"{task_id:040x}",
        ci_run_id=None,
        hint="",
        pinned_model="",
        budget_usd=2.0,
        state=state,
        reason="",
        stop_requested_by="",
        lease_owner="",
        lease_until=None,
        not_before=None,
        tries=1,
        report_due=False,
        report_not_before=None,
        published_attempt_id=published,
        branch="",
        head_sha="",
        pr_number=task_id if opened else None,
        pr_url=f"https://github.com/{name}/pull/{task_id}" if opened else "",
        status_comment_id=None,
        check_run_id=None,
        created_at=at,
        updated_at=clock,
        finished_at=clock,
    )
    if state in (TaskState.MERGED, TaskState.CLOSED):
        kind = OutcomeKind.MERGED if state is TaskState.MERGED else OutcomeKind.CLOSED
        later = clock + timedelta(hours=3)
        rows.add(
            Outcome,
            id=ids.next("outcome"),
            task_id=task_id,
            kind=kind,
            ref="1",
            at=later,
            recorded_at=later,
            data=_NOTHING,
        )
    for step in (TaskState.QUEUED, TaskState.ROUTING, TaskState.ATTEMPTING, state):
        rows.add(History, id=ids.next("history"), task_id=task_id, at=at, state=step, message=f"{step}.", data=_NOTHING)


def _attempt(
    rows: _Rows,
    ids: _Ids,
    dice: random.Random,
    task_id: int,
    repository: int,
    number: int,
    model: str,
    hard: bool,
    shares: dict[str, float],
    at: datetime,
) -> int:
    decision, attempt = ids.next("decision"), ids.next("attempt")
    propensity = shares[model] if number == 1 else 1.0
    rows.add(
        Decision,
        id=decision,
        task_id=task_id,
        at=at,
        ranked=[
            {
                "model": one,
                "share": shares[one],
                "propensity": shares[one],
                "expected_score": MODELS[one][0],
                "expected_cost_usd": MODELS[one][1],
            }
            for one in sorted(shares, key=lambda one: (one != model, -shares[one]))
        ],
        chosen=model,
        propensity=propensity,
        votes=[
            {"voter": "bandit", "weight": 1.0, "shares": shares, "confidence": 1.0, "reason": "Chance to be the best."}
        ],
        neighbours=_NOTHING_LISTED,
        reasons=[f"{model} begins the plan with the highest expected reward."],
        data={"pinned": False, "plan": []},
    )
    cost = MODELS[model][1] * dice.uniform(0.4, 1.6) * (1.3 if hard else 1.0)
    ended = at + timedelta(seconds=dice.uniform(30, 300))
    rows.add(
        Attempt,
        id=attempt,
        task_id=task_id,
        decision_id=decision,
        number=number,
        model=model,
        state=AttemptState.VERIFIED,
        exit_status="Submitted",
        error="",
        steps=4,
        tokens_in=40_000,
        tokens_out=2_000,
        cost_usd=cost,
        patch=_PATCH,
        trajectory={"messages": [{"role": "assistant", "content": "I look.", "extra": {"cost": cost / 4}}]},
        score=0.5,
        started_at=at,
        finished_at=ended,
    )
    rows.add(
        Verification,
        id=ids.next("verification"),
        attempt_id=attempt,
        at=ended,
        score=0.5,
        verdict="verified",
        summary="",
        signals=_NOTHING_LISTED,
        tests=_NOTHING,
    )
    for row in _calls(ids, task_id, attempt, repository, model, cost, at):
        rows.add(Ledger, **row)
    if attempt % 12 == 0:  # the memory is smaller than the past
        rows.add(
            MemoryEntry,
            id=ids.next("memoryentry"),
            key=f"attempt:{attempt}",
            task_key=f"task:{task_id}",
            repository="",
            dimension=dice.choice(DIMENSIONS),
            language="python",
            title="",
            link="",
            text="words " * 100,
            encoder="",
            embedding=b"\0" * 1536,
            model=model,
            score=float(dice.random() < MODELS[model][0]),
            cost_usd=cost,
            final=True,
            revision=0,
            created_at=at,
            updated_at=at,
        )
    return attempt


def _calls(
    ids: _Ids, task_id: int, attempt: int, repository: int, model: str, cost: float, at: datetime
) -> Iterator[dict[str, Any]]:
    for call in range(2):
        for closing in (False, True):
            yield {
                "id": ids.next("ledger"),
                "reservation": f"{attempt}-{call}",
                "closing": closing,
                "kind": LedgerKind.SETTLED if closing else LedgerKind.RESERVED,
                "usd_micros": round(cost / 2 * 1_000_000) * (1 if closing else 3),
                "task_id": task_id,
                "attempt_id": attempt,
                "repository_id": repository,
                "model": model,
                "at": at + timedelta(seconds=call),
            }

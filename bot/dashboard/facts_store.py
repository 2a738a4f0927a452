"""Reads the facts from the database, once in full and then what changed."""

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import structlog
from sqlalchemy import bindparam, text
from sqlmodel import Session

from bot.dashboard import facts as f
from bot.dashboard.facts import (
    AttemptFacts,
    Bools,
    Columns,
    Facts,
    SpendFacts,
    TaskFacts,
    Titles,
    Words,
    alike,
    joined,
    take,
    written_over,
)
from store.database import Database

_log = structlog.get_logger(__name__)
_OVERLAP_S = 300.0
"""Read again what changed so long before the newest change that is known: a transaction may end late."""
_LONGEST_AT_ONCE = 500
_WHOLE_EVERY_S = 3600.0
"""Rows that were removed are noticed by reading all again."""


class FactsStore:
    """The facts of one process, level with the database to within `max_age_s` seconds. Threads may share it."""

    def __init__(self, database: Database, max_age_s: float = 1.0) -> None:
        self._database = database
        self.max_age_s = max_age_s
        self._lock = threading.Lock()
        self._facts: Facts | None = None
        self._read_at = self._whole_at = 0.0
        self._newest = 0.0
        self._newest_day = 0
        self._words = (Words(), Words(), Words(), Titles())

    def current(self) -> Facts:
        """Return the facts as they stand now."""
        with self._lock:
            now = time.monotonic()
            if self._facts is None or now - self._whole_at > _WHOLE_EVERY_S:
                self._facts = self._whole()
                self._read_at = self._whole_at = now
            elif now - self._read_at >= self.max_age_s:
                self._facts = self._level(self._facts)
                self._read_at = now
            return self._facts

    def warm(self) -> None:
        """Read everything in a thread of its own, so that the first page does not wait for it."""
        threading.Thread(target=self._warm, name="facts", daemon=True).start()

    def _warm(self) -> None:
        try:
            self.current()
        except Exception:  # noqa: BLE001  (the first page will say it again, to somebody)
            _log.warning("dashboard.facts_not_read")

    def _whole(self) -> Facts:
        self._words = (*self._words[:3], Titles())
        with self._database.reading() as session:
            reader = _Reader(session, self._database.is_sqlite, self._words)
            tasks, newest = reader.tasks()
            # A process whose clock is ahead must not hide what the others change until then.
            self._newest = min(newest, time.time())
            attempts = reader.attempts()
            spend = reader.spend(0)
            self._newest_day = int(spend.day.max()) if len(spend.day) else 0
            return self._facts_of(tasks, attempts, spend, reader.repositories())

    def _level(self, old: Facts) -> Facts:
        with self._database.reading() as session:
            reader = _Reader(session, self._database.is_sqlite, self._words)
            changed = reader.changed_since(self._newest - _OVERLAP_S)
            tasks, attempts = old.tasks, old.attempts
            if changed:
                fresh, newest = reader.tasks(changed)
                self._newest = max(self._newest, min(newest, time.time()))
                ids = np.array(changed, dtype=np.int64)
                tasks = _replaced(tasks, np.isin(tasks.id, ids), fresh, "id")
                attempts = _replaced(attempts, np.isin(attempts.task, ids), reader.attempts(changed), "id")
            recent = reader.spend(self._newest_day - 1)
            spend = _replaced(old.spend, old.spend.day >= self._newest_day - 1, recent, "day")
            repositories = reader.repositories()
            if tasks is old.tasks and attempts is old.attempts and spend is old.spend:
                return old if repositories == old.repositories else replace(old, repositories=repositories)
            if len(spend.day):
                self._newest_day = int(spend.day.max())
            if np.array_equal(tasks.id, old.tasks.id) and np.array_equal(attempts.task, old.attempts.task):
                return Facts(tasks, attempts, spend, *self._words, repositories, rows=old.task_rows)
            return self._facts_of(tasks, attempts, spend, repositories)

    def _facts_of(
        self, tasks: TaskFacts, attempts: AttemptFacts, spend: SpendFacts, repositories: dict[int, str]
    ) -> Facts:
        known = np.isin(attempts.task, tasks.id)
        return Facts(tasks, attempts if known.all() else take(attempts, known), spend, *self._words, repositories)


def _replaced(columns: Columns, stale: Bools, fresh: Columns, order: str) -> Columns:
    """Return columns with some rows replaced; the same object where that changes nothing."""
    old = take(columns, stale)
    if alike(old, fresh, but="title"):
        return columns
    if np.array_equal(getattr(old, order), getattr(fresh, order)):  # the same rows, with other values
        return written_over(columns, np.flatnonzero(stale), fresh)
    return joined(take(columns, ~stale) if stale.any() else columns, fresh, order)


def read_facts(database: Database) -> Facts:
    """Return all facts, for one look."""
    return FactsStore(database).current()


class _Reader:
    def __init__(self, session: Session, sqlite: bool, words: tuple[Words, Words, Words, Titles]) -> None:
        self._session = session
        self._sqlite = sqlite
        self._models, self._persons, self._dimensions, self._titles = words

    def tasks(self, ids: Sequence[int] | None = None) -> tuple[TaskFacts, float]:
        """Return the tasks, and when the newest of them changed."""
        rows = self._rows(
            f"SELECT id, repository_id, kind, trigger, requested_by, dimension, pinned_model, state, "  # noqa: S608  (constants)
            f"published_attempt_id, {self._epoch('created_at')}, {self._epoch('finished_at')}, "
            f"{self._epoch('updated_at')} FROM task",
            "id",
            ids,
        )
        titles = dict(self._rows("SELECT id, substr(title, 1, 200) FROM task", "id", ids))
        chosen: dict[int, tuple[str, float]] = {}
        for task, _id, model, propensity in self._rows(
            "SELECT task_id, id, chosen, propensity FROM decision", "task_id", ids
        ):
            chosen.setdefault(task, (model, propensity))
        reverted = {row[0] for row in self._rows("SELECT task_id FROM outcome WHERE kind = 'reverted'", None, None)}
        rows.sort(key=lambda row: row[0])
        columns = list(zip(*rows, strict=True)) if rows else [()] * 12
        identifiers: Sequence[int] = columns[0]
        nothing = ("", float("nan"))
        first = [chosen.get(one, nothing) for one in identifiers]
        made = TaskFacts(
            id=_ints(identifiers),
            repository=_ints([f.NO_REPOSITORY if one is None else one for one in columns[1]]),
            kind=_small(_positions(f.TASK_KINDS, columns[2])),
            trigger=_small(_positions(f.TRIGGERS, columns[3])),
            person=_ints(self._persons.codes(columns[4])),
            dimension=_small(self._dimensions.codes(columns[5])),
            pinned=np.array([bool(one) for one in columns[6]], dtype=bool),
            state=_small(_positions(f.TASK_STATES, columns[7])),
            published=_ints([one or 0 for one in columns[8]]),
            created=_floats(columns[9]),
            finished=_floats(columns[10]),
            first_model=_small([self._models.code(model) if model else -1 for model, _ in first]),
            propensity=_floats([propensity for _, propensity in first]),
            reverted=np.array([one in reverted for one in identifiers], dtype=bool),
            title=_ints([self._titles.place(titles.get(one, "")) for one in identifiers]),
        )
        return made, max((float(one) for one in columns[11]), default=0.0)

    def attempts(self, tasks: Sequence[int] | None = None) -> AttemptFacts:
        rows = self._rows(
            f"SELECT id, task_id, number, model, state, cost_usd, {self._epoch('started_at')}, "  # noqa: S608
            f"{self._epoch('finished_at')} FROM attempt",
            "task_id",
            tasks,
        )
        columns = list(zip(*rows, strict=True)) if rows else [()] * 8
        return AttemptFacts(
            id=_ints(columns[0]),
            task=_ints(columns[1]),
            number=_small(columns[2]),
            model=_small(self._models.codes(columns[3])),
            state=_small(_positions(f.ATTEMPT_STATES, columns[4])),
            cost_usd=_floats(columns[5]),
            started=_floats(columns[6]),
            finished=_floats(columns[7]),
        )

    def spend(self, since_day: int) -> SpendFacts:
        """Return what was spent by day from `since_day` (since 1970, UTC) on."""
        if self._sqlite:
            day, since = (
                "CAST(julianday(substr(at, 1, 10)) - 2440587.5 AS INTEGER)",
                "date(:since * 86400, 'unixepoch')",
            )
        else:
            day, since = "CAST(floor(extract(epoch FROM at) / 86400) AS BIGINT)", "to_timestamp(:since * 86400)"
        rows = self._session.connection().execute(
            text(
                f"SELECT {day} AS day, model, coalesce(repository_id, {f.NO_REPOSITORY}), sum(usd_micros) FROM ledger "  # noqa: S608
                f"WHERE closing AND at >= {since} GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
            ),
            {"since": max(since_day, 0)},
        )
        columns = list(zip(*rows.all(), strict=True)) or [(), (), (), ()]
        return SpendFacts(
            _ints(columns[0]), _ints(self._models.codes(columns[1])), _ints(columns[2]), _ints(columns[3])
        )

    def changed_since(self, moment: float) -> list[int]:
        since = "strftime('%Y-%m-%d %H:%M:%f', :since, 'unixepoch')" if self._sqlite else "to_timestamp(:since)"
        query = text(f"SELECT id FROM task WHERE updated_at >= {since}")  # noqa: S608
        return [row[0] for row in self._session.connection().execute(query, {"since": max(moment, 0.0)})]

    def repositories(self) -> dict[int, str]:
        return {row[0]: row[1] for row in self._rows("SELECT id, full_name FROM repository", None, None)}

    def _rows(self, query: str, key: str | None, ids: Sequence[int] | None) -> list[Any]:
        """Return a query's rows, those of some ids alone where they are given; the same order each time."""
        connection = self._session.connection()
        if ids is None or key is None:
            order = " ORDER BY task_id, id" if key == "task_id" else ""
            return list(connection.execute(text(query + order)).all())
        found: list[Any] = []
        narrowed = text(f"{query} WHERE {key} IN :ids ORDER BY {key}, id").bindparams(bindparam("ids", expanding=True))
        for start in range(0, len(ids), _LONGEST_AT_ONCE):
            found += connection.execute(narrowed, {"ids": list(ids[start : start + _LONGEST_AT_ONCE])}).all()
        return found

    def _epoch(self, column: str) -> str:
        if self._sqlite:
            return f"(julianday({column}) - 2440587.5) * 86400.0"
        return f"CAST(extract(epoch FROM {column}) AS DOUBLE PRECISION)"


def _positions(words: Sequence[str], values: Sequence[str]) -> list[int]:
    places = {str(word): place for place, word in enumerate(words)}
    return [places[value] for value in values]


def _ints(values: Sequence[int]) -> f.Ints:
    return np.array(values, dtype=np.int64)


def _small(values: Sequence[int]) -> f.Ints:
    """A column of small numbers: a quarter of the memory to walk through."""
    return np.array(values, dtype=np.int16)


def _floats(values: Sequence[float | None]) -> f.Floats:
    return np.array([float("nan") if value is None else float(value) for value in values], dtype=np.float64)

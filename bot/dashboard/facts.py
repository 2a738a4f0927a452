"""The narrow facts behind every number, as columns in memory: one row a task, one an attempt, one a day of spend.

The database is the truth; this copy is read from covering indexes once and then kept level by what changed. Numbers
over a year of 100,000 tasks are then a few milliseconds of numpy, on SQLite and Postgres alike.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from store.states import AttemptState, TaskKind, TaskState, Trigger

Ints = NDArray[Any]
"""Whole numbers, of 16 or 64 bits."""
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Columns = TypeVar("Columns")
"""A dataclass whose fields are arrays of one length."""

TASK_STATES = tuple(TaskState)
TASK_KINDS = tuple(TaskKind)
TRIGGERS = tuple(Trigger)
ATTEMPT_STATES = tuple(AttemptState)
NO_REPOSITORY = -1
"""Stands for a local task's repository."""
DAY_S = 86_400


class Words:
    """Strings by small numbers: a column of names takes eight bytes a row."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._codes: dict[str, int] = {}

    def code(self, name: str) -> int:
        """Return the number of a name, a new one where it is new."""
        found = self._codes.get(name)
        if found is None:
            found = self._codes[name] = len(self.names)
            self.names.append(name)
        return found

    def find(self, name: str) -> int:
        """Return the number of a name, or -1."""
        return self._codes.get(name, -1)

    def codes(self, names: Iterable[str]) -> list[int]:
        return [self.code(name) for name in names]


class Titles:
    """The tasks' titles, cut to 200 characters, and the same in lower case, to be searched."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.lower: list[str] = []

    def place(self, title: str) -> int:
        """Keep a title and return where."""
        self.shown.append(title)
        self.lower.append(title.lower())
        return len(self.shown) - 1


@dataclass(frozen=True)
class TaskFacts:
    """Tasks in the order of their ids. Times are seconds since 1970, NaN where there is none."""

    id: Ints
    repository: Ints
    kind: Ints
    trigger: Ints
    person: Ints
    dimension: Ints
    pinned: Bools
    state: Ints
    published: Ints
    """Id of the attempt in the PR, 0 where there is none."""
    created: Floats
    finished: Floats
    first_model: Ints
    """The model that the first decision chose, -1 before it."""
    propensity: Floats
    """Of that choice."""
    reverted: Bools
    title: Ints
    """Its place among the `Titles`."""

    def __len__(self) -> int:
        return len(self.id)


@dataclass(frozen=True)
class AttemptFacts:
    """Attempts, each with its task's id; `Facts.task_rows` says where that task stands."""

    id: Ints
    task: Ints
    """The task's id."""
    number: Ints
    model: Ints
    state: Ints
    cost_usd: Floats
    started: Floats
    finished: Floats

    def __len__(self) -> int:
        return len(self.id)


@dataclass(frozen=True)
class SpendFacts:
    """Money that was settled or assumed, in micro-dollars, by day (since 1970, UTC), model and repository."""

    day: Ints
    model: Ints
    repository: Ints
    micros: Ints


@dataclass(frozen=True)
class Facts:
    """One consistent look at an installation's past."""

    tasks: TaskFacts
    attempts: AttemptFacts
    spend: SpendFacts
    models: Words
    persons: Words
    dimensions: Words
    titles: Titles
    repositories: dict[int, str] = field(default_factory=dict)
    """Full names by id."""
    rows: Ints | None = field(default=None, repr=False)
    """`task_rows`, where whoever cut these facts knows them already: a search would take longer than a page may."""
    columns: dict[str, Bools] = field(default_factory=dict, repr=False)
    """What was computed of these facts already (`once`)."""

    @cached_property
    def task_rows(self) -> Ints:
        """For each attempt, the row of its task."""
        return np.searchsorted(self.tasks.id, self.attempts.task) if self.rows is None else self.rows

    def of_repositories(self, allowed: Sequence[int] | None) -> "Facts":
        """Return the facts of some repositories alone; None: all, local tasks too."""
        if allowed is None:
            return self
        ids = np.array(sorted(allowed), dtype=np.int64)
        keep = np.isin(self.tasks.repository, ids)
        return self.only(keep, np.isin(self.spend.repository, ids))

    def only(self, tasks: Bools, spend: Bools | None = None) -> "Facts":
        """Return the facts of the tasks of a mask, with their attempts."""
        paid = self.spend if spend is None else take(self.spend, spend)
        if tasks.all():
            return replace(self, spend=paid, rows=self.task_rows)
        kept, attempts = np.flatnonzero(tasks), np.flatnonzero(tasks[self.task_rows])
        rows = self.task_rows[_part(attempts)]
        follow_each_other = isinstance(_part(kept), slice)
        return replace(
            self,
            tasks=take(self.tasks, kept),
            attempts=take(self.attempts, attempts),
            spend=paid,
            rows=rows - kept[0] if follow_each_other else (np.cumsum(tasks) - 1)[rows],
            columns={},
        )


def once(compute: Callable[[Facts], Bools]) -> Callable[[Facts], Bools]:
    """Compute a column of some facts' attempts once, for all who ask for it: tasks and attempts never change."""

    @wraps(compute)
    def kept(facts: Facts) -> Bools:
        found = facts.columns.get(compute.__name__)
        if found is None:
            found = facts.columns[compute.__name__] = compute(facts)
        return found

    return kept


def present(codes: Ints) -> list[int]:
    """Return which of some small numbers occur, in order; those below 0 stand for nothing."""
    return np.flatnonzero(np.bincount(codes[codes >= 0])).tolist() if len(codes) else []


def take(columns: Columns, mask: Bools | Ints) -> Columns:
    """Return the rows of a mask, or of row numbers in order, of a dataclass of columns.

    Rows that follow each other are not copied: facts never change, and a period's tasks have followed each other.
    """
    part = _part(np.flatnonzero(mask) if mask.dtype == np.bool_ else mask)
    return type(columns)(**{name: column[part] for name, column in vars(columns).items()})


def _part(rows: Ints) -> slice | Ints:
    """Return row numbers in order as a slice, where they follow each other."""
    if len(rows) and rows[-1] - rows[0] + 1 == len(rows):
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows


def alike(first: Columns, second: Columns, but: str = "") -> bool:
    """Return whether two dataclasses of columns say the same, one column left out."""
    others = vars(second)
    return all(
        np.array_equal(column, others[name], equal_nan=column.dtype.kind == "f")
        for name, column in vars(first).items()
        if name != but
    )


def written_over(columns: Columns, rows: Ints, fresh: Columns) -> Columns:
    """Return a dataclass of columns with other values in some rows."""
    others = vars(fresh)
    made: dict[str, Any] = {name: column.copy() for name, column in vars(columns).items()}
    for name, column in made.items():
        column[rows] = others[name]
    return type(columns)(**made)


def joined(first: Columns, second: Columns, order: str) -> Columns:
    """Return two dataclasses of columns as one, sorted by one of them."""
    others = vars(second)
    columns: dict[str, Any] = {name: np.concatenate([column, others[name]]) for name, column in vars(first).items()}
    if np.all(np.diff(columns[order]) >= 0):
        return type(first)(**columns)
    by = np.argsort(columns[order], kind="stable")
    return type(first)(**{name: column[by] for name, column in columns.items()})

"""A stream of tasks with what every model of a pool did on each: the data that routers are compared on.

Three files: tasks (JSON Lines), results (CSV, one row for each task and model) and models (JSON with prices in USD per
million tokens). CodeRouterBench has this shape, and so has any other stream that is given by hand.
"""

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from bench.routing.errors import StreamError
from routing.errors import PoolError
from routing.pool import ModelPool, ModelSpec
from routing.types import Dimension
from store.suggest import did_you_mean, explain, unreadable

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

USD_WEIGHT = 0.1
"""reward = resolved - 0.1 x USD, as in the paper (arXiv 2606.22902)."""


class StreamKind(Enum):
    """What a stream is there for."""

    MAIN = auto()
    RUN_ONLY = auto()
    """A main stream in which only cells that were run may be chosen."""
    SINGLE_TURN = auto()
    """Tasks that are answered at once, in an order that matters."""
    DRAWN = auto()
    DRIFT = auto()
    """Drawn, and a model gets much better in mid-stream."""


@dataclass(frozen=True)
class StreamTask:
    """What a router may see of a task. Its id stays behind: it names the source data set."""

    text: str
    dimension: Dimension


@dataclass(frozen=True)
class Stream:
    """T tasks in their released order and what M models did on them. All arrays are (T, M)."""

    name: str
    """What stands before a slash is the name of a group, whose streams count together."""
    tasks: tuple[StreamTask, ...]
    pool: ModelPool
    resolved: Floats
    """Score in [0, 1] by the hidden tests."""
    passes: Floats
    """1 where a patch exists and applies: all that an honest verifier sees."""
    usd: Floats
    ran: Bools
    """False for a cell that was never run: it counts as a failure for $0."""
    allowed: Bools
    """Models that a router may choose on a task."""
    votes: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    """Published voters: the model that each chose on each task, as (T,) indices."""
    kind: StreamKind = StreamKind.MAIN

    @property
    def models(self) -> tuple[str, ...]:
        return self.pool.names

    @property
    def rewards(self) -> Floats:
        """Return the (T, M) rewards of single attempts; minus infinity where a model may not be chosen."""
        rewards: Floats = np.where(self.allowed, self.resolved - USD_WEIGHT * self.usd, -np.inf)
        return rewards

    def __len__(self) -> int:
        return len(self.tasks)

    def first(self, count: int) -> "Stream":
        """Return the stream's first tasks."""
        return self._of(self.name, np.arange(min(count, len(self))))

    def run_only(self) -> "Stream":
        """Return the stream in which only cells that were run may be chosen, without tasks that have none."""
        found = self._of(f"{self.name}.run_only", np.flatnonzero(self.ran.any(axis=1)))
        return replace(found, allowed=found.ran, kind=StreamKind.RUN_ONLY)

    def _of(self, name: str, keep: NDArray[np.int64]) -> "Stream":
        return replace(
            self,
            name=name,
            tasks=tuple(self.tasks[t] for t in keep),
            resolved=self.resolved[keep],
            passes=self.passes[keep],
            usd=self.usd[keep],
            ran=self.ran[keep],
            allowed=self.allowed[keep],
            votes={voter: chosen[keep] for voter, chosen in self.votes.items()},
        )


def read_stream(name: str, *, tasks: Path, results: Path, models: Path, voters: Path | None = None) -> Stream:
    """Read a stream.

    Args:
        name: of the stream, in the figures' names.
        tasks: JSON Lines with `task_id`, `dimension` and, where there is one, `prompt`.
        results: CSV with `task_id`, `model`, `cost_usd`, and `resolved` or `score`; `apply_ok` and `calls` where known.
        models: JSON `{"models": [{"model", "input_per_1m", "output_per_1m"}]}`.
        voters: folder of `NAME.jsonl` with `task_id` and `chosen_model`.

    Raises:
        StreamError: a file is missing, a column or a cell is, or a value is out of range.
    """
    pool = _read_pool(models)
    ids, read = _read_tasks(tasks)
    cells = _read_results(results, ids, pool)
    return Stream(
        name=name,
        tasks=read,
        pool=pool,
        resolved=cells["resolved"],
        passes=cells["apply_ok"],
        usd=cells["cost_usd"],
        ran=cells["ran"].astype(bool),
        allowed=np.ones_like(cells["ran"], dtype=bool),
        votes=_read_votes(voters, ids, pool) if voters is not None else {},
    )


def _read_pool(path: Path) -> ModelPool:
    try:
        data = json.loads(_text(path))
    except json.JSONDecodeError as error:
        raise StreamError(f"{path}: line {error.lineno} is not JSON.") from error
    entries = data.get("models") if isinstance(data, dict) else None
    if not isinstance(entries, list) or not entries:
        raise StreamError(f"{path}: must be an object with a list 'models' that is not empty.")
    specs = []
    for number, entry in enumerate(entries):
        where = f"{path}: models.{number}"
        if not isinstance(entry, dict) or not isinstance(entry.get("model"), str):
            raise StreamError(f"{where}: has no 'model', the name that the results use.")
        prices = {
            key: _number(entry.get(key), f"{where} ({entry['model']})", key)
            for key in ("input_per_1m", "output_per_1m")
        }
        try:
            spec = ModelSpec(
                name=entry["model"],
                litellm_id=entry["model"],
                input_usd_per_mtok=prices["input_per_1m"],
                output_usd_per_mtok=prices["output_per_1m"],
                free=not any(prices.values()),
            )
        except ValidationError as error:
            raise StreamError(explain(error, where, ModelSpec)) from error
        specs.append(spec)
    try:
        return ModelPool(tuple(specs))
    except PoolError as error:
        raise StreamError(f"{path}: {error}") from error


def _read_tasks(path: Path) -> tuple[dict[str, int], tuple[StreamTask, ...]]:
    ids: dict[str, int] = {}
    tasks: list[StreamTask] = []
    for where, row in _json_lines(path):
        task_id, dimension = row.get("task_id"), row.get("dimension")
        if not isinstance(task_id, str) or not task_id:
            raise StreamError(f"{where}: has no 'task_id'.")
        if task_id in ids:
            raise StreamError(f"{where}: the task '{task_id}' is there twice.")
        if dimension not in [d.value for d in Dimension]:
            raise StreamError(
                f"{where}: unknown dimension '{dimension}'.{did_you_mean(str(dimension), list(Dimension))} "
                f"Known: {', '.join(Dimension)}."
            )
        ids[task_id] = len(tasks)
        tasks.append(StreamTask(str(row.get("prompt") or ""), Dimension(dimension)))
    if not tasks:
        raise StreamError(f"{path}: holds no task.")
    return ids, tuple(tasks)


def _read_results(path: Path, ids: Mapping[str, int], pool: ModelPool) -> dict[str, Floats]:
    columns = {model: position for position, model in enumerate(pool.names)}
    cells = {key: np.full((len(ids), len(columns)), np.nan) for key in ("resolved", "apply_ok", "cost_usd", "ran")}
    reader = csv.DictReader(io.StringIO(_text(path), newline=""))
    names = reader.fieldnames or []
    score = "resolved" if "resolved" in names else "score"
    for column in ("task_id", "model", "cost_usd", score):
        if column not in names:
            raise StreamError(f"{path}: has no column '{column}'. It has: {', '.join(names)}.")
    for where, row in _csv_rows(path, reader):
        if row["task_id"] not in ids:
            raise StreamError(f"{where}: the task '{row['task_id']}' is not in the tasks' file.")
        if row["model"] not in columns:
            raise StreamError(
                f"{where}: unknown model '{row['model']}'.{did_you_mean(row['model'], columns)} "
                "Add it with its prices to the models' file."
            )
        cell = ids[row["task_id"]], columns[row["model"]]
        if not np.isnan(cells["resolved"][cell]):
            raise StreamError(f"{where}: '{row['model']}' is there twice for the task '{row['task_id']}'.")
        value = _number(row[score], where, score, most=1.0)
        cells["resolved"][cell] = value
        cells["apply_ok"][cell] = _number(row.get("apply_ok", value), where, "apply_ok", most=1.0)
        cells["cost_usd"][cell] = _number(row["cost_usd"], where, "cost_usd")
        cells["ran"][cell] = _number(row.get("calls", 1), where, "calls") > 0
    missing = np.argwhere(np.isnan(cells["resolved"]))
    if len(missing):
        task, model = list(ids)[missing[0][0]], pool.names[missing[0][1]]
        raise StreamError(f"{path}: {len(missing)} cells are missing, the first is '{model}' on the task '{task}'.")
    return cells


def _csv_rows(path: Path, reader: "csv.DictReader[str]") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each row with where it ends. A comma within a number makes one with more cells than there are columns."""
    while True:
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise StreamError(f"{path}, line {reader.line_num}: is not CSV: {error}. Is a quote left open?") from error
        if row is None:
            return
        where = f"{path}, line {reader.line_num}"
        if None in row:
            raise StreamError(f"{where}: has more cells than there are columns. Quote cells that hold a comma.")
        yield where, row


def _read_votes(folder: Path, ids: Mapping[str, int], pool: ModelPool) -> dict[str, NDArray[np.int64]]:
    columns = {model: position for position, model in enumerate(pool.names)}
    voters = {}
    for path in sorted(folder.glob("*.jsonl")):
        chosen = np.full(len(ids), -1, dtype=np.int64)
        for where, row in _json_lines(path):
            if row.get("task_id") not in ids:
                raise StreamError(f"{where}: the task '{row.get('task_id')}' is not in the tasks' file.")
            if row.get("chosen_model") not in columns:
                raise StreamError(f"{where}: unknown model '{row.get('chosen_model')}'.")
            chosen[ids[row["task_id"]]] = columns[row["chosen_model"]]
        if (chosen < 0).any():
            raise StreamError(f"{path}: has no vote on {int((chosen < 0).sum())} of {len(ids)} tasks.")
        voters[path.stem] = chosen
    return voters


def _json_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    # `splitlines` would also break at characters that JSON allows within a string, such as U+2028.
    for number, line in enumerate(_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise StreamError(f"{where}: is not JSON.") from error
        if not isinstance(row, dict):
            raise StreamError(f"{where}: must be an object.")
        yield where, row


def _number(value: Any, where: str, key: str, *, most: float = math.inf) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise StreamError(f"{where}: '{key}' is {value!r}; it must be a number.") from None
    if not 0 <= number <= most or math.isinf(number):
        limits = "0 or more" if math.isinf(most) else f"within [0, {most:g}]"
        raise StreamError(f"{where}: '{key}' is {value}; it must be {limits}.")
    return number


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")  # spreadsheets put a mark in front
    except FileNotFoundError:
        _missing(path)
    except (OSError, UnicodeDecodeError) as error:
        raise StreamError(f"{path}: cannot be read: {unreadable(error)}.") from error
    raise AssertionError


def _missing(path: Path) -> Any:
    raise StreamError(f"{path}: there is no such file. Give the folder with --data, or each file by itself.")


def orders(stream: Stream, permutations: int, *, seed: int = 0) -> Sequence[NDArray[np.int64]]:
    """Return seeded permutations of a stream's tasks."""
    return [np.random.default_rng([seed, number]).permutation(len(stream)) for number in range(permutations)]

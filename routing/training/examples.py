"""What is learnt from: tasks with what each model that tried them was worth, from a profile or the own history."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sqlmodel import col

from routing.dimension import classify, detect_language
from routing.errors import TrainingError
from routing.pool import ModelPool
from routing.reward import RewardWeights, reward
from routing.types import Dimension, Evidence
from store.database import Database
from store.suggest import explain, unreadable
from store.tables import MemoryEntry

_START = datetime(2000, 1, 1, tzinfo=UTC)
SOLVED = 0.5
"""Score from which an attempt counts as a success."""


@dataclass(frozen=True)
class Result:
    score: float
    cost_usd: float


@dataclass(frozen=True)
class Example:
    """One task with its results by model."""

    key: str
    title: str
    text: str
    dimension: Dimension
    language: str
    repository: str
    results: Mapping[str, Result]

    def best(self, weights: RewardWeights) -> str | None:
        """Return the model with the highest reward among those that solved the task; None: none did."""
        solved = {name: r for name, r in self.results.items() if r.score >= SOLVED}
        return max(solved, key=lambda n: (reward(solved[n].score, solved[n].cost_usd, weights), n), default=None)

    def evidence(self) -> Iterator[Evidence]:
        """Return the results as evidence, without text: for statistics."""
        for model, result in self.results.items():
            yield Evidence(
                key=f"{self.key}:{model}",
                task_key=self.key,
                dimension=self.dimension,
                model=model,
                score=result.score,
                cost_usd=result.cost_usd,
                final=True,
                at=_START,
            )


class ProfileLine(BaseModel):
    """One line of a profile: what one model did on one task. Amounts are in USD."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    task: str = Field(min_length=1)
    """The same for all lines of one task."""
    text: str = Field(min_length=1)
    title: str = ""
    dimension: Dimension | None = None
    """Without one it is found in the text."""
    language: str = ""
    repository: str = ""
    model: str = Field(min_length=1)
    score: float = Field(ge=0, le=1, allow_inf_nan=False)
    cost_usd: float = Field(ge=0, allow_inf_nan=False)


def read_profile(path: Path) -> list[Example]:
    """Return the examples of a profile: a file of JSON lines, one `ProfileLine` each.

    Raises:
        TrainingError: the file cannot be read or a line is wrong; each mistake is one line with its place.
    """
    try:
        # `splitlines` would also break at characters that JSON allows within a string, such as U+2028.
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise TrainingError(f"{path}: cannot be read: {unreadable(error)}.") from error
    read, mistakes = [], []
    for number, text in enumerate(lines, start=1):
        if not text.strip():
            continue
        try:
            read.append(ProfileLine.model_validate(json.loads(text)))
        except ValidationError as error:
            mistakes += explain(error, f"{path}: line {number}", ProfileLine).splitlines()
        except (ValueError, RecursionError):
            mistakes.append(f"{path}: line {number}: not valid JSON.")
    if mistakes:
        raise TrainingError("\n".join(mistakes[:20]))
    return _grouped(
        (
            line.task,
            line.title,
            line.text,
            line.dimension or classify(line.title, line.text),
            line.language or detect_language(line.text),
            line.repository,
            line.model,
            Result(line.score, line.cost_usd),
        )
        for line in read
    )


def read_history(database: Database, pool: ModelPool | None = None) -> list[Example]:
    """Return the examples of this installation's own memory; rows without text are left out.

    The `pool` knows which of its names once stood for other models.
    """
    row = MemoryEntry
    query = (
        sqlalchemy.select(
            col(row.task_key),
            col(row.title),
            col(row.text),
            col(row.dimension),
            col(row.language),
            col(row.repository),
            col(row.model),
            col(row.score),
            col(row.cost_usd),
            col(row.created_at),
        )
        .where(col(row.text) != "")
        .order_by(col(row.id))
    )
    with database.session() as session:
        rows = session.execute(query).all()
    return _grouped(
        (
            key,
            title,
            text,
            _dimension(dimension, title, text),
            language,
            repository,
            model if pool is None else pool.stood_for(model, made_at),
            Result(score, cost),
        )
        for key, title, text, dimension, language, repository, model, score, cost, made_at in rows
    )


def _dimension(name: str, title: str, text: str) -> Dimension:
    return Dimension(name) if name in Dimension.__members__.values() else classify(title, text)


_Row = tuple[str, str, str, Dimension, str, str, str, Result]


def _grouped(rows: Iterable[_Row]) -> list[Example]:
    """Of two results of one model on one task the later one counts; the words are those of the task's first row."""
    examples: dict[str, Example] = {}
    for key, title, text, dimension, language, repository, model, result in rows:
        first = examples.get(key) or Example(key, title, text, dimension, language, repository, {})
        examples[key] = Example(
            key, first.title, first.text, first.dimension, first.language, first.repository,
            {**first.results, model: result},
        )  # fmt: skip
    return list(examples.values())

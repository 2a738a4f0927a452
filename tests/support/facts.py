"""Facts by hand: a few tasks with attempts, as the statistics take them."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bot.dashboard import facts as f
from bot.dashboard.facts import AttemptFacts, Facts, SpendFacts, TaskFacts, Titles, Words
from store.states import AttemptState, TaskKind, TaskState, Trigger

NOW = 20_000 * f.DAY_S + 43_200.0
"""Noon of a day, since 1970."""


@dataclass(frozen=True)
class Tried:
    """One attempt: its model, what it cost, and whether it is the one in the PR."""

    model: str
    usd: float = 0.1
    published: bool = False
    state: AttemptState = AttemptState.VERIFIED
    seconds: float = 60.0


@dataclass(frozen=True)
class Done:
    """One task and what became of it."""

    state: TaskState
    attempts: tuple[Tried, ...] = ()
    days_ago: float = 0.0
    repository: int = 42
    dimension: str = "bug_fixing"
    person: str = "ada"
    propensity: float = 1.0
    pinned: bool = False
    reverted: bool = False
    seconds: float = 600.0
    """From trigger to ending."""
    title: str = "A bug"
    first: str = field(default="")
    """The first decision's model, where it is not the first attempt's."""


def facts_of(*stories: Done) -> Facts:
    """Return facts that tell these stories; every attempt is paid on its task's day."""
    models, persons, dimensions, titles = Words(), Words(), Words(), Titles()
    tasks: list[tuple[object, ...]] = []
    attempts: list[tuple[object, ...]] = []
    spend: list[tuple[int, int, int, int]] = []
    for number, story in enumerate(stories, start=1):
        created = NOW - story.days_ago * f.DAY_S
        published = 0
        for place, tried in enumerate(story.attempts, start=1):
            identity = len(attempts) + 1
            published = identity if tried.published else published
            code = models.code(tried.model)
            state = f.ATTEMPT_STATES.index(tried.state)
            ended = created + tried.seconds
            attempts.append((identity, number, place, code, state, tried.usd, created, ended))
            spend.append((int(created // f.DAY_S), code, story.repository, round(tried.usd * 1_000_000)))
        first = story.first or (story.attempts[0].model if story.attempts else "")
        ended_at = float("nan") if story.state.is_open else created + story.seconds
        tasks.append(
            (
                number,
                story.repository,
                f.TASK_KINDS.index(TaskKind.ISSUE),
                f.TRIGGERS.index(Trigger.LABEL),
                persons.code(story.person),
                dimensions.code(story.dimension),
                story.pinned,
                f.TASK_STATES.index(story.state),
                published,
                created,
                ended_at,
                models.code(first) if first else -1,
                story.propensity,
                story.reverted,
                titles.place(story.title),
            )
        )
    return Facts(
        TaskFacts(*_columns(tasks, "iiiiiibiiffifbi")),
        AttemptFacts(*_columns(attempts, "iiiiifff")),
        SpendFacts(*_columns(spend, "iiii")),
        models,
        persons,
        dimensions,
        titles,
        {42: "octo/tools", 43: "octo/secret"},
    )


def merged_by(model: str, usd: float = 0.1, **story: object) -> Done:
    """A task that one model solved at once."""
    return Done(TaskState.MERGED, (Tried(model, usd, published=True),), **story)  # type: ignore[arg-type]


def lost_by(model: str, usd: float = 0.1, **story: object) -> Done:
    """A task on which one model failed, and nobody else tried."""
    return Done(TaskState.NO_FIX, (Tried(model, usd),), **story)  # type: ignore[arg-type]


def _columns(rows: list[tuple[object, ...]] | list[tuple[int, int, int, int]], types: str) -> list[Any]:
    kinds = {"i": np.int64, "f": np.float64, "b": np.bool_, "o": np.object_}
    columns = list(zip(*rows, strict=True)) or [()] * len(types)
    return [np.array(column, dtype=kinds[kind]) for column, kind in zip(columns, types, strict=True)]

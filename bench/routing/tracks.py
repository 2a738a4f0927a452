"""The three tracks, and one run of a player over a stream.

1. one-shot: one model a task; its outcome is revealed afterwards.
2. k-try, honest verifier: up to 4 attempts; between them only `apply_ok` is seen; the last one is handed in.
3. k-try, label verifier: as 2, but `resolved` itself stops the attempts.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bench.routing.stream import USD_WEIGHT, Floats, Stream

MOST_ATTEMPTS = 4
DELAYS = (0, 10, 50)


class Track(IntEnum):
    ONE_SHOT = 1
    HONEST = 2
    LABEL = 3

    @property
    def attempts(self) -> int:
        return 1 if self is Track.ONE_SHOT else MOST_ATTEMPTS


@dataclass(frozen=True)
class Tried:
    """An attempt at a task, and what the track's verifier showed of it at once, in [0, 1]."""

    model: int
    shown: float


class Player(Protocol):
    """A router under test, or a peer. Models and tasks are indices into the stream."""

    def first(self, task: int) -> int:
        """Return the model for the first attempt."""
        ...

    def following(self, task: int, tried: Sequence[Tried]) -> int | None:
        """Return the model for the next attempt after failures, or None to stop."""
        ...

    def reveal(self, task: int, tried: Sequence[Tried]) -> None:
        """Learn: `resolved` and the cost of these attempts are known now."""
        ...


@dataclass(frozen=True)
class Played:
    """What one run over a stream brought, task by task in the order of the run: arrays of (T,)."""

    regrets: Floats
    resolved: Floats
    usd: Floats
    tried: tuple[tuple[int, ...], ...]
    """The models of each task's attempts, in their order."""

    @property
    def cumreg(self) -> float:
        return float(self.regrets.sum())

    @property
    def avgperf(self) -> float:
        return float(100 * self.resolved.mean())


def play(stream: Stream, order: Sequence[int] | NDArray[np.int64], player: Player, track: Track, delay: int) -> Played:
    """Run a player over a stream. What becomes of a task is revealed before the `delay` + 1st task after it."""
    best = stream.rewards.max(axis=1)
    waiting: deque[tuple[int, list[Tried]]] = deque()
    rows, models = [], []
    for task in map(int, order):
        while len(waiting) > delay:
            player.reveal(*waiting.popleft())
        tried = _attempt(stream, task, player, track)
        waiting.append((task, tried))
        usd = sum(stream.usd[task, t.model] for t in tried)
        resolved = stream.resolved[task, tried[-1].model]
        rows.append((best[task] - (resolved - USD_WEIGHT * usd), resolved, usd))
        models.append(tuple(t.model for t in tried))
    regrets, resolved_, usd_ = np.array(rows).T
    return Played(regrets, resolved_, usd_, tuple(models))


def _attempt(stream: Stream, task: int, player: Player, track: Track) -> list[Tried]:
    shows = stream.resolved if track is Track.LABEL else stream.passes
    tried: list[Tried] = []
    following: int | None = player.first(task)
    while following is not None:
        if not stream.allowed[task, following] or following in [t.model for t in tried]:
            raise ValueError(f"task {task}: {stream.models[following]} may not be tried here (again)")
        tried.append(Tried(following, float(shows[task, following])))
        if len(tried) == track.attempts or tried[-1].shown >= 1.0:
            break
        following = player.following(task, tried)
    return tried

"""The shipped router as a player: `routing.Router` with its defaults, through what every user of it can call."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from bench.routing.stream import Stream
from bench.routing.tracks import Track, Tried
from routing import Evidence, Router, RoutingDecision, RoutingTask
from routing.contexts import traits
from routing.dimension import detect_language
from routing.reward import RewardWeights
from routing.types import Memory, Pool, Vote, Voter
from routing.voters import DEFAULT_WEIGHTS, FACTORIES, Factory

_START = datetime(2026, 1, 1, tzinfo=UTC)


def routing_tasks(stream: Stream, encoded: NDArray[np.float32]) -> list[RoutingTask]:
    """Return a stream's tasks as the router's. Their keys are numbers: an id would name the data set."""
    return [
        RoutingTask(
            key=f"task:{number}",
            text=task.text,
            dimension=task.dimension,
            language=detect_language(task.text),
            traits=traits(task.text),
            embedding=vector if vector.any() else None,
        )
        for number, (task, vector) in enumerate(zip(stream.tasks, encoded, strict=True))
    ]


class Acrouter:
    """Decides, escalates and observes; nothing else of the router is touched."""

    def __init__(
        self,
        stream: Stream,
        tasks: Sequence[RoutingTask],
        track: Track,
        seed: int,
        *,
        voter_weights: Mapping[str, float] | None = None,
        explore: bool = True,
    ) -> None:
        published = {f"published_{name}": chosen for name, chosen in stream.votes.items()}
        self.router = Router(
            stream.pool,
            voter_weights={**(voter_weights or DEFAULT_WEIGHTS), **dict.fromkeys(published, 1.0)},
            factories={**FACTORIES, **{name: _factory(name, chosen) for name, chosen in published.items()}},
            max_attempts=track.attempts,
            seed=seed,
        )
        self._stream = stream
        self._tasks = tasks
        self._explore = explore
        self._models = {name: position for position, name in enumerate(stream.models)}
        self._decisions: dict[int, RoutingDecision] = {}
        self._minutes = 0

    def first(self, task: int) -> int:
        decision = self.router.decide(self._tasks[task], deny=self._denied(task), explore=self._explore)
        self._decisions[task] = decision
        return self._models[decision.chosen]

    def following(self, task: int, tried: Sequence[Tried]) -> int | None:
        scores = {self._stream.models[t.model]: t.shown for t in tried}
        line = self.router.escalate(self._tasks[task], self._decisions[task], scores)
        return None if line is None else self._models[line.model]

    def reveal(self, task: int, tried: Sequence[Tried]) -> None:
        routed = self._tasks[task]
        for attempt in tried:
            self._minutes += 1
            evidence = Evidence(
                key=f"{routed.key}:{attempt.model}",
                task_key=routed.key,
                dimension=routed.dimension,
                model=self._stream.models[attempt.model],
                score=attempt.shown,
                cost_usd=float(self._stream.usd[task, attempt.model]),
                final=False,
                at=_START + timedelta(minutes=self._minutes),
                language=routed.language,
                traits=routed.traits,
                embedding=routed.embedding,
                encoder=self.router.encoder.name,
            )
            if self.router.max_attempts > 1:
                self.router.observe(evidence)
            resolved = float(self._stream.resolved[task, attempt.model])
            self.router.observe(replace(evidence, score=resolved, final=True))
        self._decisions.pop(task, None)

    def _denied(self, task: int) -> list[str]:
        return [name for name, may in zip(self._stream.models, self._stream.allowed[task], strict=True) if not may]


class PublishedVoter:
    """A published voter behind the router's own Protocol: it names the model that it chose on each task."""

    def __init__(self, name: str, chosen: NDArray[np.int64]) -> None:
        self.name = name
        self._chosen = chosen

    def vote(self, task: RoutingTask, memory: Memory, pool: Pool) -> Vote:  # noqa: ARG002
        model = list(pool.names)[int(self._chosen[int(task.key.rpartition(":")[2])])]
        return Vote(self.name, {model: 1.0}, reason=f"It names {model}.")

    def learn(self, evidence: Evidence) -> None:
        """Learn nothing: it was trained beforehand."""

    def forget(self, key: str) -> None:
        """Forget nothing."""


def _factory(name: str, chosen: NDArray[np.int64]) -> Factory:
    def make(weights: RewardWeights) -> Voter:  # noqa: ARG001
        return PublishedVoter(name, chosen)

    return make

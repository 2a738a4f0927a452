"""The bandit and the bench's peers beside MABWiser, a well-kept library of bandits, on the same data."""

from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from bench.routing import peers
from bench.routing.player import routing_tasks
from bench.routing.stream import USD_WEIGHT, Floats, Stream
from bench.routing.synthetic import RECIPES, synthetic_stream
from routing.types import Evidence
from routing.voters.bandit import Bandit
from tests.support.routing import START, FixedMemory

LEARNT = 120


@pytest.fixture(scope="module")
def stream() -> Stream:
    return synthetic_stream("mixed", RECIPES["mixed"], 3)


@pytest.fixture(scope="module")
def x(stream: Stream) -> Floats:
    return peers.features(stream, peers.vectors(stream))


@pytest.fixture(scope="module")
def chosen(stream: Stream) -> list[int]:
    """Who was tried on each of the first tasks: anybody."""
    return [int(model) for model in np.random.default_rng(0).integers(len(stream.models), size=LEARNT)]


def taught(stream: Stream, x: Floats, chosen: list[int], *, alpha: float) -> Any:
    """Return the library's LinUCB after the first tasks."""
    from mabwiser.mab import MAB, LearningPolicy  # type: ignore[import-untyped]  # seconds: only where it is needed

    bandit = MAB(list(range(len(stream.models))), LearningPolicy.LinUCB(alpha=alpha, l2_lambda=1.0))
    rewards = [reward(stream, task, model) for task, model in enumerate(chosen)]
    bandit.fit(decisions=chosen, rewards=rewards, contexts=x[:LEARNT])
    return bandit


def reward(stream: Stream, task: int, model: int) -> float:
    return float(stream.resolved[task, model] - USD_WEIGHT * stream.usd[task, model])


def test_the_peer_linucb_is_that_of_the_library(stream: Stream, x: Floats, chosen: list[int]) -> None:
    theirs = taught(stream, x, chosen, alpha=1.0)
    ours = peers.LinUcb(stream, 0, x)
    for task, model in enumerate(chosen):
        ours.learn(task, model, reward(stream, task, model))

    for task in range(LEARNT, len(stream)):
        told = theirs.predict_expectations(x[task : task + 1])
        assert ours.scores(task) == pytest.approx([told[model] for model in range(len(stream.models))], abs=1e-6)


def test_the_bandit_earns_more_than_the_librarys_from_the_same_attempts(
    stream: Stream, x: Floats, chosen: list[int]
) -> None:
    """Both choose greedily. The bandit knows more: prices, what models share, what 0 and 1 are."""
    theirs = taught(stream, x, chosen, alpha=0.0)
    ours = Bandit()
    tasks = routing_tasks(stream, peers.vectors(stream))
    for number, model in enumerate(chosen):
        task = tasks[number]
        ours.learn(
            Evidence(
                key=task.key,
                task_key=task.key,
                dimension=task.dimension,
                model=stream.models[model],
                score=float(stream.resolved[number, model]),
                cost_usd=float(stream.usd[number, model]),
                final=True,
                at=START + timedelta(minutes=number),
                traits=task.traits,
                embedding=task.embedding,
            )
        )

    def choice(task: int) -> int:
        told = ours.vote(tasks[task], FixedMemory(), stream.pool).expected_scores
        values = [told[name] - USD_WEIGHT * stream.pool.expected_cost_usd(name) for name in stream.models]
        return int(np.argmax(values))

    later = range(LEARNT, len(stream))
    earned = {
        "ours": sum(reward(stream, task, choice(task)) for task in later),
        "theirs": sum(reward(stream, task, int(theirs.predict(x[task : task + 1]))) for task in later),
        "random": sum(float(np.mean([reward(stream, task, m) for m in range(len(stream.models))])) for task in later),
    }
    assert earned["ours"] > earned["theirs"] > earned["random"], earned

"""What the policy model is trained on: the questions that the voter will ask, with the answer that was best."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from routing.cost_model import CostModel
from routing.costs import Candidates, candidates
from routing.encoders import embedding_text
from routing.errors import TrainingError
from routing.memory import NEIGHBOURS, VectorMemory
from routing.policy.question import ModelStatistics, question
from routing.pool import ModelPool
from routing.priors import STRENGTH, prior_scores
from routing.reward import DEFAULT_WEIGHTS as DEFAULT_REWARD
from routing.reward import RewardWeights
from routing.tallies import Tallies
from routing.training.examples import Example
from routing.types import Encoder, RoutingTask, Vector

_BATCH = 64


@dataclass(frozen=True)
class Lesson:
    """One question as chat messages, and the name of the model that should be answered."""

    messages: Sequence[dict[str, str]]
    answer: str


def lessons(
    examples: Sequence[Example], pool: ModelPool, encoder: Encoder, weights: RewardWeights = DEFAULT_REWARD
) -> list[Lesson]:
    """Return a lesson for each task that a model of the pool solved.

    The statistics and the neighbours in a question are those of all other tasks: with its own results among them the
    model would learn to read the answer off.

    Raises:
        TrainingError: nothing was solved, so there is nothing to learn.
    """
    names = {spec.name for spec in pool.models}
    tallies, costs = Tallies(), CostModel()
    known = [
        Example(e.key, e.title, e.text, e.dimension, e.language, e.repository, results)
        for e in examples
        if (results := {model: result for model, result in e.results.items() if model in names})
    ]
    vectors = _vectors(known, encoder)
    memory = VectorMemory(encoder, capacity=max(1, sum(len(example.results) for example in known)))

    def learn(example: Example) -> None:
        for evidence in example.evidence():
            tallies.put(evidence)
            costs.learn(evidence)
            memory.put(replace(evidence, embedding=vectors[example.key], encoder=encoder.name))

    for example in known:
        learn(example)
    made = []
    for example in known:
        answer = example.best(weights)
        if answer is None:
            continue
        for evidence in example.evidence():
            tallies.remove(evidence.key)
            costs.forget(evidence.key)
            memory.remove(evidence.key)
        task = replace(_task(example), embedding=vectors[example.key])
        near = () if task.embedding is None else memory.neighbours(task.embedding, NEIGHBOURS)
        statistics = _statistics(task, tallies, candidates(pool, costs, task))
        made.append(Lesson(question(task, statistics, near).messages(), answer))
        learn(example)
    if not made:
        raise TrainingError(
            f"{len(examples)} task(s), and none was solved by a model of the pool ({', '.join(sorted(names))}): "
            "there is nothing to learn from."
        )
    return made


def _vectors(examples: Sequence[Example], encoder: Encoder) -> dict[str, Vector | None]:
    """Return the unit vectors of the tasks' words by key; None where there is nothing to compare."""
    found: dict[str, Vector | None] = {}
    for start in range(0, len(examples), _BATCH):
        part = examples[start : start + _BATCH]
        rows = encoder.encode([embedding_text(example.title, example.text) for example in part])
        found |= {example.key: row if row.any() else None for example, row in zip(part, rows, strict=True)}
    return found


def _task(example: Example) -> RoutingTask:
    return RoutingTask(example.key, example.text, example.dimension, language=example.language, title=example.title)


def _statistics(task: RoutingTask, tallies: Tallies, priced: Candidates) -> dict[str, ModelStatistics]:
    prior = prior_scores(priced)
    statistics = {}
    for model in priced.names:
        tally = tallies.of(task.dimension, model)
        overall = tallies.of_model(model).mean_score(prior[model], STRENGTH)
        statistics[model] = ModelStatistics(
            model, tally.attempts, tally.mean_score(overall, STRENGTH), priced.expected_cost_usd(model)
        )
    return statistics

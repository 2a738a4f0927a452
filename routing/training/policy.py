"""What the policy model is trained on: the questions that the voter will ask, with the answer that was best."""

from collections.abc import Sequence
from dataclasses import dataclass

from routing.cost_model import CostModel
from routing.costs import Candidates, candidates
from routing.errors import TrainingError
from routing.policy.question import ModelStatistics, question
from routing.pool import ModelPool
from routing.priors import STRENGTH, prior_scores
from routing.reward import DEFAULT_WEIGHTS as DEFAULT_REWARD
from routing.reward import RewardWeights
from routing.tallies import Tallies
from routing.training.examples import Example
from routing.types import RoutingTask


@dataclass(frozen=True)
class Lesson:
    """One question as chat messages, and the name of the model that should be answered."""

    messages: Sequence[dict[str, str]]
    answer: str


def lessons(examples: Sequence[Example], pool: ModelPool, weights: RewardWeights = DEFAULT_REWARD) -> list[Lesson]:
    """Return a lesson for each task that a model of the pool solved.

    The statistics in a question are those of all other tasks: with its own results among them the model would learn
    to read the answer off.

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
    for example in known:
        for evidence in example.evidence():
            tallies.put(evidence)
            costs.learn(evidence)
    made = []
    for example in known:
        answer = example.best(weights)
        if answer is None:
            continue
        own = list(example.evidence())
        for evidence in own:
            tallies.remove(evidence.key)
            costs.forget(evidence.key)
        task = _task(example)
        made.append(
            Lesson(question(task, _statistics(task, tallies, candidates(pool, costs, task))).messages(), answer)
        )
        for evidence in own:
            tallies.put(evidence)
            costs.learn(evidence)
    if not made:
        raise TrainingError(
            f"{len(examples)} task(s), and none was solved by a model of the pool ({', '.join(sorted(names))}): "
            "there is nothing to learn from."
        )
    return made


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

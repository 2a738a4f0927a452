"""The orchestrator: asks the voters, adds their weighted votes, and answers with a ranked list and its reasons."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import structlog

from routing import reasons
from routing.costs import Candidates
from routing.draw import Draw, draw
from routing.escalation import Option, plan
from routing.priors import prior_scores
from routing.reward import DEFAULT_WEIGHTS as DEFAULT_REWARD
from routing.reward import RewardWeights
from routing.types import Memory, PlannedStep, Pool, RankedModel, RoutingDecision, RoutingTask, Vote, Voter

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Orchestrator:
    """Weighs the voters' opinions. It holds no state of its own."""

    voters: Mapping[str, Voter]
    weights: Mapping[str, float]
    reward_weights: RewardWeights = DEFAULT_REWARD
    max_attempts: int = 3

    def decide(
        self,
        task: RoutingTask,
        memory: Memory,
        pool: Candidates,
        rng: np.random.Generator,
        *,
        factor: float,
        explore: bool = True,
        pinned: str | None = None,
        budget_usd: float | None = None,
        left_out: Mapping[str, str] = {},
    ) -> RoutingDecision:
        """Return a decision over `pool`, which holds only models that may be used and is not empty.

        Args:
            task: what is to be done, with its embedding.
            memory: where voters look for similar tasks.
            pool: the models with their expected costs.
            rng: draws from randomised votes.
            factor: what a failure multiplies the other models' expected scores with, for the plan.
            explore: False: nothing is drawn.
            pinned: comes first with propensity 1, whatever the votes.
            budget_usd: for the plan; the pool's models have each been held against it already.
            left_out: models that were not asked about, and why, for the reasons.
        """
        votes = tuple(self._ask(name, voter, task, memory, pool) for name, voter in self.voters.items())
        result = draw(votes, pool, rng, explore=explore and pinned is None)
        first = pinned or result.first
        propensities = {n: float(n == first) for n in pool.names} if pinned else result.propensities
        scores = expected_scores(result.votes, pool)
        steps = self._plan(first, pool, scores, factor, budget_usd)
        ranked = [
            RankedModel(name, result.totals[name], propensities[name], scores[name], pool.expected_cost_usd(name))
            for name in _order(first, steps, result.totals)
        ]
        neighbours = max((vote.neighbours for vote in result.votes), key=len, default=())
        return RoutingDecision(
            ranked=tuple(ranked),
            votes=result.votes,
            reasons=tuple(self._reasons(task, ranked, result, pinned, left_out)),
            neighbours=tuple(neighbours),
            pinned=pinned is not None,
            plan=steps,
        )

    def _ask(self, name: str, voter: Voter, task: RoutingTask, memory: Memory, pool: Pool) -> Vote:
        weight = self.weights[name]
        try:
            vote = replace(voter.vote(task, memory, pool), voter=name, weight=weight)
            problem = _problem(vote, pool)
        except Exception as error:  # noqa: BLE001  (one broken voter must not stop the others)
            _log.warning("voter_failed", voter=name, task=task.key, exc_info=error)
            return Vote(name, {}, reason=f"It failed ({type(error).__name__}) and abstains.", weight=weight)
        if problem:
            _log.warning("vote_rejected", voter=name, task=task.key, problem=problem)
            return Vote(name, {}, reason=f"Its vote was not usable ({problem}).", weight=weight)
        return vote

    def _plan(
        self, first: str, pool: Candidates, scores: Mapping[str, float], factor: float, budget_usd: float | None
    ) -> tuple[PlannedStep, ...]:
        """Return the first choice as a step, and what is best after its failure."""
        cost = pool.expected_cost_usd(first)
        rest = plan(
            [Option(n, scores[n], pool.expected_cost_usd(n)) for n in pool.names if n != first],
            failures=1,
            best_score=0.0,
            factor=factor,
            budget_usd=None if budget_usd is None else budget_usd - cost,
            steps=self.max_attempts - 1,
            weights=self.reward_weights,
        )
        gain = self.reward_weights.score * scores[first] - self.reward_weights.usd * cost
        value = gain + (1 - scores[first]) * (rest[0].value if rest else 0.0)
        return (PlannedStep(first, scores[first], cost, value), *rest)

    def _reasons(
        self,
        task: RoutingTask,
        ranked: list[RankedModel],
        result: Draw,
        pinned: str | None,
        left_out: Mapping[str, str],
    ) -> list[str]:
        first = ranked[0]
        told = []
        if pinned:
            told.append(reasons.pinned(pinned))
        elif len(ranked) == 1:
            told.append(reasons.only_one(first.model))
        else:
            told.append(reasons.chosen(first, result.votes))
            favourite = max(result.propensities, key=lambda name: result.propensities[name])
            if favourite != first.model and any(vote.drawn == first.model for vote in result.votes):
                told.append(reasons.explored(first.model, favourite, first.propensity))
        neighbours = max((vote.neighbours for vote in result.votes), key=len, default=())
        if neighbours:
            told.append(reasons.similar(neighbours, task.repository))
        told += [v.reason for v in result.votes if v.reason and not v.neighbours]
        if left_out:
            told.append(reasons.left_out(left_out))
        return told


def expected_scores(votes: tuple[Vote, ...], pool: Pool) -> dict[str, float]:
    """Return each model's expected score in [0, 1]: the voters' beliefs by weight x confidence, else the prior."""
    prior = prior_scores(pool)
    scores = {}
    for name in pool.names:
        beliefs = [(v.weight * v.confidence, v.expected_scores[name]) for v in votes if name in v.expected_scores]
        total = sum(mass for mass, _ in beliefs)
        believed = sum(mass * score for mass, score in beliefs) / total if total > 0 else prior[name]
        scores[name] = min(max(believed, 0.0), 1.0)
    return scores


def _order(first: str, steps: tuple[PlannedStep, ...], totals: Mapping[str, float]) -> list[str]:
    """The first choice, then the plan, then the rest by their share."""
    planned = [step.model for step in steps]
    rest = sorted((n for n in totals if n not in planned), key=lambda n: -totals[n])
    return [first, *(n for n in planned if n != first), *rest]


def _problem(vote: Vote, pool: Pool) -> str:
    """Return what makes a vote unusable, or nothing."""
    if not vote.abstains:
        if unknown := set(vote.shares) - set(pool.names):
            return f"a share for {min(unknown)}, which is not in the pool"
        if not all(math.isfinite(s) and s >= 0 for s in vote.shares.values()):
            return "a share below 0 or not a number"
        if not math.isclose(sum(vote.shares.values()), 1.0, abs_tol=1e-6):
            return "shares that do not sum to 1"
    if not (math.isfinite(vote.confidence) and 0 <= vote.confidence <= 1):
        return "a confidence outside [0, 1]"
    if not all(math.isfinite(score) for score in vote.expected_scores.values()):
        return "an expected score that is not a number"
    return ""

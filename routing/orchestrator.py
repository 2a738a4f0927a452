"""The orchestrator: asks the voters, weighs what they believe, plans the attempts, and answers with its reasons."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import structlog

from routing import reasons
from routing.costs import Candidates
from routing.draw import Draw, draw, scenario_scores, scenario_shifts
from routing.escalation import Option, Outlook, Passes, first_values, outlook, plan
from routing.failures import PRIOR_SPREAD
from routing.logits import Floats
from routing.namings import NamingRecord
from routing.reward import DEFAULT_WEIGHTS as DEFAULT_REWARD
from routing.reward import RewardWeights
from routing.types import Memory, PlannedStep, Pool, RankedModel, RoutingDecision, RoutingTask, Vote, Voter
from routing.views import expected_scores, namings, views
from routing.voters.shares import softmax_shares

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Orchestrator:
    """Weighs the voters' opinions. It holds no state of its own."""

    voters: Mapping[str, Voter]
    reward_weights: RewardWeights = DEFAULT_REWARD
    max_attempts: int = 3

    def decide(
        self,
        task: RoutingTask,
        memory: Memory,
        pool: Candidates,
        rng: np.random.Generator,
        *,
        weights: Mapping[str, float],
        additions: Callable[[Mapping[str, Mapping[str, float]]], dict[str, float]] | None = None,
        passes: Passes | None = None,
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
            rng: draws the scenario of an exploration.
            weights: of the voters, by name.
            additions: returns what namings add to the models' scores (`routing.namings`); None: what they do at first.
            passes: how far the verifier is to be trusted on this task, for the plan; None: fully.
            explore: False: nothing is drawn.
            pinned: comes first with propensity 1, whatever the votes.
            budget_usd: for the plan; the pool's models have each been held against it already.
            left_out: models that were not asked about, and why, for the reasons.
        """
        votes = tuple(self._ask(name, voter, weights[name], task, memory, pool) for name, voter in self.voters.items())
        believed, named = views(votes, pool), namings(votes, pool)
        if additions is None:
            added = NamingRecord().additions({name: weights[name] for name in named}, named, task.dimension)
        else:
            added = additions(named)
        spread = next((vote.spread for vote in votes if vote.spread is not None), PRIOR_SPREAD)
        scores = expected_scores(votes, believed, added, pool)
        # Equal values go to the cheaper model, then by name.
        names = sorted(pool.names, key=lambda name: (pool.expected_cost_usd(name), name))
        view = outlook(
            [Option(name, scores[name], pool.expected_cost_usd(name)) for name in names],
            spread=spread,
            passes=passes,
        )
        values = first_values(view, budget_usd=budget_usd, steps=self.max_attempts, weights=self.reward_weights)
        deviations = _deviations(votes, names) if explore and pinned is None else None
        result = self._draw(view, values, deviations, rng)
        first = pinned or result.first
        scenario: dict[str, float] = {}
        if result.scenario is not None and deviations is not None:
            told = np.array([scores[name] for name in names])
            drawn = scenario_scores(told, deviations)[result.scenario]
            scenario = dict(zip(names, drawn.tolist(), strict=True))
            view = outlook(
                [Option(name, scenario[name], pool.expected_cost_usd(name)) for name in names],
                spread=spread,
                passes=passes,
            )
        propensities = {n: float(n == first) for n in names} if pinned else result.propensities
        attempts = self.max_attempts if pinned is None else 1  # a model that a person asked for is not escalated
        steps = plan(view, budget_usd=budget_usd, steps=attempts, weights=self.reward_weights, first=first)
        shares = softmax_shares(dict(zip(names, values.tolist(), strict=True)))
        ranked = [
            RankedModel(name, shares[name], propensities[name], scores[name], pool.expected_cost_usd(name))
            for name in _order(first, steps, shares)
        ]
        neighbours = max((vote.neighbours for vote in votes), key=len, default=())
        return RoutingDecision(
            ranked=tuple(ranked),
            votes=votes,
            reasons=tuple(self._reasons(task, ranked, votes, result, pinned, left_out)),
            neighbours=tuple(neighbours),
            pinned=pinned is not None,
            plan=steps,
            views=believed,
            namings=named,
            spread=spread,
            scenario=scenario,
        )

    def _ask(self, name: str, voter: Voter, weight: float, task: RoutingTask, memory: Memory, pool: Pool) -> Vote:
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

    def _draw(self, view: Outlook, values: Floats, deviations: Floats | None, rng: np.random.Generator) -> Draw:
        names = [option.model for option in view.options]
        if deviations is None or len(names) == 1:
            return draw(names, values, rng=rng)
        losses = self.reward_weights.usd * np.array([option.cost_usd for option in view.options])
        shifts = scenario_shifts(view, deviations, losses, steps=self.max_attempts, weights=self.reward_weights)
        return draw(names, values, shifts=shifts, rng=rng)

    def _reasons(
        self,
        task: RoutingTask,
        ranked: list[RankedModel],
        votes: Sequence[Vote],
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
            explored = result.favourite != first.model
            told.append(reasons.chosen(first, votes, explored=explored))
            if explored:
                told.append(reasons.explored(first.model, result.favourite, first.propensity))
        neighbours = max((vote.neighbours for vote in votes), key=len, default=())
        if neighbours:
            told.append(reasons.similar(neighbours, task.repository))
        told += [v.reason for v in votes if v.reason and not v.neighbours]
        if left_out:
            told.append(reasons.left_out(left_out))
        return told


def _deviations(votes: Sequence[Vote], names: Sequence[str]) -> Floats | None:
    """Return the (M,) deviations by weight of the votes that give any, or None where none does."""
    unsure = [vote for vote in votes if vote.deviations and vote.weight > 0]
    if not unsure:
        return None
    total = sum(vote.weight for vote in unsure)
    return np.array([sum(v.weight * v.deviations.get(name, 0.0) for v in unsure) / total for name in names])


def _order(first: str, steps: tuple[PlannedStep, ...], shares: Mapping[str, float]) -> list[str]:
    """The first choice, then the plan, then the rest by their share."""
    planned = [step.model for step in steps]
    rest = sorted((n for n in shares if n not in planned and n != first), key=lambda n: -shares[n])
    return [first, *(n for n in planned if n != first), *rest]


def _problem(vote: Vote, pool: Pool) -> str:
    """Return what makes a vote unusable, or nothing."""
    if not vote.abstains and (problem := _problem_of_shares(vote, pool)):
        return problem
    if not (math.isfinite(vote.confidence) and 0 <= vote.confidence <= 1):
        return "a confidence outside [0, 1]"
    if not all(math.isfinite(score) for score in vote.expected_scores.values()):
        return "an expected score that is not a number"
    if not all(math.isfinite(d) and d >= 0 for d in vote.deviations.values()):
        return "a deviation below 0 or not a number"
    if vote.spread is not None and not (math.isfinite(vote.spread) and vote.spread >= 0):
        return "a spread below 0 or not a number"
    return ""


def _problem_of_shares(vote: Vote, pool: Pool) -> str:
    if unknown := set(vote.shares) - set(pool.names):
        return f"a share for {min(unknown)}, which is not in the pool"
    if not all(math.isfinite(s) and s >= 0 for s in vote.shares.values()):
        return "a share below 0 or not a number"
    if not math.isclose(sum(vote.shares.values()), 1.0, abs_tol=1e-6):
        return "shares that do not sum to 1"
    return ""

"""The sentences of a decision's reasons. They hold names, numbers and issue numbers, never text from outside."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from routing.types import Neighbour, RankedModel, Vote
from templates.escape import usd

SOLVED = 0.5
"""A score from which an attempt is spoken of as having solved its task."""
_NUMBER = re.compile(r"/(?:issues|pull)/(\d+)(?:[#?].*)?$")
_MOST_FAILURES = 2


def pinned(model: str) -> str:
    return f"{model} was asked for by name."


def only_one(model: str) -> str:
    return f"{model} is the only model that may be used here."


def chosen(first: RankedModel, votes: Sequence[Vote], *, explored: bool = False) -> str:
    """Return the sentence on why the first model is that, and who voted for it. The plan decides, not the shares."""
    for_it = [
        vote.voter
        for vote in votes
        if not vote.abstains and max(vote.shares, key=lambda m: vote.shares[m]) == first.model
    ]
    opinions = sum(not vote.abstains for vote in votes)
    if for_it:
        voters = f"first choice of {len(for_it)} of {opinions} voter{'s' * (opinions != 1)} ({', '.join(for_it)})"
    else:
        voters = "though no voter would take it alone" if opinions else "and no voter has an opinion"
    why = "was drawn" if explored else "begins the plan with the highest expected reward"
    return (
        f"{first.model} {why}, {voters}: expected score {first.expected_score:.2f} for {usd(first.expected_cost_usd)}."
    )


def explored(model: str, favourite: str, propensity: float) -> str:
    return (
        f"{model} is being explored: {favourite} was likelier to come first, but {model} was drawn with a chance of "
        f"{propensity:.0%}, so that more is learnt of it."
    )


def similar(neighbours: Sequence[Neighbour], repository: str) -> str:
    """Return what the models did on similar tasks, e.g. "small solved 2 of 3 similar tasks ($0.02 each)"."""
    by_model: defaultdict[str, list[Neighbour]] = defaultdict(list)
    for neighbour in neighbours:
        by_model[neighbour.model].append(neighbour)
    parts = []
    for model, own in sorted(by_model.items(), key=lambda item: (-_solved(item[1]) / len(item[1]), -len(item[1]))):
        cost = usd(sum(n.cost_usd for n in own) / len(own))
        tasks = "task" if len(own) == 1 else "tasks"
        part = f"{model} solved {_solved(own)} of {len(own)} similar {tasks} ({cost} each)"
        failed = [_failure(n, repository) for n in own if n.score < SOLVED]
        told = [words for words in failed if words][:_MOST_FAILURES]
        parts.append(part + (f", {' and '.join(told)}" if told else ""))
    return "; ".join(parts) + "."


def left_out(reasons: Mapping[str, str]) -> str:
    return "Left out: " + "; ".join(f"{model} ({why})" for model, why in reasons.items()) + "."


def too_dear(cost: float, budget: float) -> str:
    return f"expected to cost {usd(cost)}, the budget leaves {usd(budget)}"


def _solved(neighbours: Sequence[Neighbour]) -> int:
    return sum(n.score >= SOLVED for n in neighbours)


def _failure(neighbour: Neighbour, repository: str) -> str:
    """Say where it failed, within the task's own repository only: others may be private."""
    match = _NUMBER.search(neighbour.link)
    if not match or not repository or neighbour.repository != repository:
        return ""
    return f"{'not merged' if neighbour.final else 'tests failed'} on #{match[1]}"

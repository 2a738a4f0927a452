"""A routing decision as plain values for the columns of `store.tables.Decision`."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from routing.types import RoutingDecision, Vote


def decision_columns(decision: RoutingDecision) -> dict[str, Any]:
    """Return `ranked`, `chosen`, `propensity`, `votes`, `neighbours`, `reasons` and `data`, ready for JSON.

    Use: `Decision(task_id=..., **decision_columns(decision))`.
    """
    return {
        "ranked": [asdict(line) for line in decision.ranked],
        "chosen": decision.chosen,
        "propensity": decision.propensity,
        "votes": [_vote(vote) for vote in decision.votes],
        "neighbours": [asdict(neighbour) for neighbour in decision.neighbours],
        "reasons": list(decision.reasons),
        "data": {"pinned": decision.pinned, "plan": [asdict(step) for step in decision.plan]},
    }


def _vote(vote: Vote) -> Mapping[str, Any]:
    return {
        "voter": vote.voter,
        "weight": vote.weight,
        "shares": dict(vote.shares),
        "confidence": vote.confidence,
        "reason": vote.reason,
        "expected_scores": dict(vote.expected_scores),
        "abstains": vote.abstains,
        "deviations": dict(vote.deviations),
    }

"""What was said of the models by the newest decisions of each task, until their attempts are learnt from."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from routing.types import RoutingDecision

MOST_TASKS = 5000

_ByVoter = Mapping[str, Mapping[str, float]]
"""By voter and model."""


@dataclass(frozen=True)
class _Said:
    views: _ByVoter
    namings: _ByVoter
    expected_scores: Mapping[str, float]
    """By model."""


_NOTHING = _Said({}, {}, {})


class OpenDecisions:
    """By task. A decision after a failure leaves out who was tried: what was said of those before stays."""

    def __init__(self) -> None:
        self._said: OrderedDict[str, _Said] = OrderedDict()

    def remember(self, task_key: str, decision: RoutingDecision) -> None:
        before = self._said.pop(task_key, _NOTHING)
        expected = {line.model: line.expected_score for line in decision.ranked}
        self._said[task_key] = _Said(
            _joined(before.views, decision.views),
            _joined(before.namings, decision.namings),
            {**before.expected_scores, **expected},
        )
        while len(self._said) > MOST_TASKS:
            self._said.popitem(last=False)

    def views(self, task_key: str, model: str) -> dict[str, float]:
        """Return what each voter believed of a model, as far as it believes anything."""
        return _of(self._said.get(task_key, _NOTHING).views, model)

    def namings(self, task_key: str, model: str) -> dict[str, float]:
        """Return the share that each voter without beliefs gave a model, over an even split."""
        return _of(self._said.get(task_key, _NOTHING).namings, model)

    def expected_score(self, task_key: str, model: str) -> float | None:
        """Return what a model was expected to score, None where no decision on the task is known."""
        return self._said.get(task_key, _NOTHING).expected_scores.get(model)


def _of(said: _ByVoter, model: str) -> dict[str, float]:
    return {voter: models[model] for voter, models in said.items() if model in models}


def _joined(known: _ByVoter, new: _ByVoter) -> _ByVoter:
    return {voter: {**known.get(voter, {}), **new.get(voter, {})} for voter in {**known, **new}}

"""What a model that judges says of a patch. Small and light: `sandbox.agent.judge` asks one."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Opinion:
    """One answer, or why there is none."""

    model: str
    probability: float | None
    """In [0, 1], that a maintainer would merge the patch; None: the model gave no answer."""
    reason: str
    """Its own sentence (untrusted); without an answer, ours on why there is none."""
    cost_usd: float = 0.0
    endpoint_answered: bool | None = None
    """False: the model's endpoint could not be used. None: nothing was learnt of it, e.g. for want of money."""


class Judge(Protocol):
    """Gives an opinion on a patch."""

    def __call__(self, task_text: str, patch: str) -> Opinion:
        """Ask once. Whatever goes wrong is an opinion without a probability; nothing is raised."""
        ...

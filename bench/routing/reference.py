"""Figures that must not get worse: the short form is held against a file in the repository."""

import json
from collections.abc import Mapping
from importlib import resources

from bench.routing.figures import ERROR
from store.errors import AcrouterError

_FILE = "reference.json"
ERRORS = 1.96
"""Standard errors by which a figure may be higher. Not its 95% interval: of the short form's three permutations that is
4.3 of them, and hardly anything would count as worse."""


class FigureWorse(AcrouterError):  # noqa: N818  (it reads as what it is)
    """A figure got worse by more than chance explains."""


def reference() -> dict[str, float]:
    """Return the figures of the short form as they were when they were last accepted."""
    text = resources.files("bench.routing").joinpath(_FILE).read_text(encoding="utf-8")
    found: dict[str, float] = json.loads(text)["figures"]
    return found


def worse(figures: Mapping[str, float], accepted: Mapping[str, float]) -> list[str]:
    """Return a line for each accepted CumReg that was measured too and is higher by more than `ERRORS`."""
    return [
        f"{name} is {figures[name]:.2f}; {value:.2f} was accepted, "
        f"and {ERRORS * accepted[name + ERROR]:.2f} more at most."
        for name, value in accepted.items()
        if name.endswith(".cumreg")
        and name + ERROR in accepted
        and name in figures
        and figures[name] > value + ERRORS * accepted[name + ERROR]
    ]


def check(figures: Mapping[str, float]) -> None:
    """Hold figures against the reference.

    Raises:
        FigureWorse: at least one got worse; the message names each. Where that is meant, write the new figures with
            `acrouter bench routing --short --accept`.
    """
    if lines := worse(figures, reference()):
        raise FigureWorse("\n".join(lines))

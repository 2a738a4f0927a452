"""Which models a decision may choose from, and why the others may not be used."""

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Self

from routing import reasons
from routing.costs import Candidates
from routing.errors import RoutingError
from routing.pool import ModelPool


@dataclass(frozen=True)
class Limits:
    """What a person, a repository's configuration, the budget and the endpoints' health leave."""

    exclude: Collection[str] = ()
    """Tried already, or not available."""
    allow: Collection[str] | None = None
    """The only ones, None for all."""
    deny: Collection[str] = ()
    pinned: str | None = None
    budget_usd: float | None = None

    @classmethod
    def of(
        cls,
        *,
        exclude: Iterable[str],
        allow: Iterable[str] | None,
        deny: Iterable[str],
        pinned: str | None,
        budget_usd: float | None,
    ) -> Self:
        """Return limits that may be read as often as they must: an iterator would leave nothing for the second time.

        Raises:
            RoutingError: a string stands where names of models should.
        """
        return cls(
            _names("exclude", exclude),
            None if allow is None else _names("allow", allow),
            _names("deny", deny),
            pinned,
            budget_usd,
        )

    def check(self, pool: ModelPool) -> None:
        """Check that the budget is a number and that the pool has the models that are allowed, denied or pinned.

        Raises:
            RoutingError: the budget is not a number.
            PoolError: a model is not in the pool.
        """
        if self.budget_usd is not None and math.isnan(self.budget_usd):
            raise RoutingError("budget_usd is not a number. Give USD, or None for no limit.")
        for name in self._named():
            pool.get(name)

    def left_out(self, models: Candidates) -> dict[str, str]:
        """Return the models that may not be used, each with why."""
        whys = {}
        for name in models.names:
            cost = models.expected_cost_usd(name)
            if name in self.deny or (self.allow is not None and name not in self.allow):
                whys[name] = "not allowed here"
            elif name in self.exclude:
                whys[name] = "tried already or not available"
            elif self.budget_usd is not None and cost > self.budget_usd:
                whys[name] = reasons.too_dear(cost, self.budget_usd)
        return whys

    def _named(self) -> Iterator[str]:
        yield from self.allow or ()
        yield from self.deny
        if self.pinned is not None:
            yield self.pinned


def _names(what: str, given: Iterable[str]) -> tuple[str, ...]:
    if isinstance(given, str):
        raise RoutingError(f"{what} is the string '{given}'. Give a list of models' names.")
    return tuple(given)

"""How well the shipped profile foretells a benchmark: each one from all others.

`python -m bench.routing.published` leaves the benchmarks out one by one and compares what the profile then expects of
the models (`routing.profile`) with what they did there. Both are logits less their mean over the models: a router needs
to know who is better, and finds out by itself how hard its tasks are.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

from bench.routing.stream import Floats
from routing.profile import Profile, load_profile


@dataclass(frozen=True)
class Foretold:
    """A benchmark's M models, of which other benchmarks know something too. Logits, both with a mean of 0."""

    expected: Floats
    """(M,) from the other benchmarks."""
    scored: Floats
    """(M,)"""

    @property
    def correlation(self) -> float:
        return float(np.corrcoef(self.expected, self.scored)[0, 1])

    @property
    def spread(self) -> float:
        return float(self.scored.std())

    @property
    def error(self) -> float:
        """Root mean square."""
        return float(np.sqrt(np.mean(np.square(self.scored - self.expected))))


def foretold(profile: Profile) -> Mapping[str, Foretold]:
    """Return what all others tell of each benchmark, those with fewer than three models left out."""
    found = {}
    for benchmark, scored in profile.logits().items():
        known = profile.abilities({benchmark})
        models = [model for model in scored if model in known]
        if len(models) > 2:
            pair = (np.array([values[model] for model in models]) for values in (known, scored))
            found[benchmark] = Foretold(*(values - values.mean() for values in pair))
    return found


def main() -> None:
    """Print a line for each benchmark, and one for all of their models together, with the mean correlation."""
    found = foretold(load_profile())
    table = Table("benchmark", "models", "spread", "correlation", "error")
    for benchmark, one in found.items():
        table.add_row(benchmark, *_cells(one, one.correlation))
    together = Foretold(
        np.concatenate([one.expected for one in found.values()]),
        np.concatenate([one.scored for one in found.values()]),
    )
    table.add_row("all", *_cells(together, float(np.mean([one.correlation for one in found.values()]))))
    Console().print("Logits; 'error' is that of what the other benchmarks foretell (root mean square)")
    Console().print(table)


def _cells(one: Foretold, correlation: float) -> tuple[str, ...]:
    return str(len(one.scored)), f"{one.spread:.2f}", f"{correlation:.2f}", f"{one.error:.2f}"


if __name__ == "__main__":
    main()

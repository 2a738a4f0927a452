"""How soon a router sees that a model got much better in mid-stream (`bench.routing.synthetic`, DRIFT)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from bench.routing.contest import ROUTER, Run
from bench.routing.stream import Stream, StreamKind
from bench.routing.synthetic import DRIFT, RISER, synthetic_stream
from bench.routing.tracks import Played

LEAST_LATER = 20
"""Tasks that must be left for a share of them to say anything."""
SOON = 40
"""Outcomes of the model within which it is to be found."""


def drift_streams(count: int) -> list[Stream]:
    """Draw streams in which a hopeless model gets much better."""
    return [synthetic_stream(f"drift/{seed}", DRIFT, seed) for seed in range(count)]


def outcomes_until_found(tried: Sequence[tuple[int, ...]], riser: int, better_from: int) -> int | None:
    """Return how many outcomes of the better model came before half of the later tasks went to it first.

    Args:
        tried: the models of each task's attempts, in the order of the run.
        riser: the model that got better.
        better_from: the task from which on it is.

    None: with no number of its outcomes did half of what was left go to it, LEAST_LATER tasks at least.
    """
    later = tried[better_from:]
    first = np.array([models[0] == riser for models in later])
    seen = np.cumsum([0, *(riser in models for models in later[:-1])])
    for outcomes in range(int(seen[-1]) + 1):
        rest = first[int(np.searchsorted(seen, outcomes)) :]
        if len(rest) < LEAST_LATER:
            return None
        if rest.mean() >= 0.5:
            return outcomes
    return None


def drift_figures(played: Mapping[Run, Played], streams: Sequence[Stream]) -> dict[str, float]:
    """Return how soon the drift streams' better models were found; other streams have no part in it.

    `drift.trackN.tried` is the share of the streams (%) in which it was tried at all since it got better, early enough
    to tell, `drift.trackN.found` the share in which the router found it within SOON of its outcomes,
    `drift.trackN.outcomes` the median of these where it found it at all. Peers have their name in front.
    """
    risers = {s.name: s.models.index(RISER) for s in streams if s.kind is StreamKind.DRIFT}
    needed: defaultdict[str, list[int | None]] = defaultdict(list)
    tried: defaultdict[str, list[bool]] = defaultdict(list)
    for run, result in played.items():
        if run.stream in risers:
            name = "" if run.player == ROUTER else f"{run.player}."
            prefix, riser = f"{name}drift.track{int(run.track)}", risers[run.stream]
            needed[prefix].append(outcomes_until_found(result.tried, riser, DRIFT.better_from))
            tried[prefix].append(any(riser in models for models in result.tried[DRIFT.better_from : -LEAST_LATER]))
    figures = {}
    for prefix, counts in needed.items():
        known = [count for count in counts if count is not None]
        figures[f"{prefix}.tried"] = 100 * sum(tried[prefix]) / len(counts)
        figures[f"{prefix}.found"] = 100 * sum(count <= SOON for count in known) / len(counts)
        if known:
            figures[f"{prefix}.outcomes"] = float(np.median(known))
    return figures

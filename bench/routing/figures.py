"""From runs to figures by their dotted names."""

from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from bench.routing.contest import RELEASED, ROUTER, Run
from bench.routing.intervals import half_width, standard_error
from bench.routing.tracks import Played

CI = "_ci95"
"""Ending of a half-width: the mean lies within it of the figure with 95% confidence (`bench.routing.intervals`)."""
ERROR = "_se"
"""Ending of a standard error of the mean."""


def figures(played: Mapping[Run, Played]) -> dict[str, float]:
    """Return `STREAM.trackN[.delayD].(released|permuted).(cumreg|avgperf|usd)`; a one-track stream names no track.

    Streams of a group count together. Peers and ablations have their name in front.
    `STREAM.trackN.delayD.cumreg` is short for the permuted mean.
    """
    one_track = {
        stream
        for stream in {run.stream for run in played}
        if len({run.track for run in played if run.stream == stream}) == 1
    }
    groups: defaultdict[str, list[Played]] = defaultdict(list)
    for run, result in played.items():
        groups[_prefix(run, run.stream in one_track)].append(result)
    found: dict[str, float] = {}
    for prefix, results in groups.items():
        for name in ("cumreg", "avgperf", "usd"):
            values = np.array([_value(result, name) for result in results])
            found[f"{prefix}.{name}"] = float(values.mean())
            if len(values) > 1:
                found[f"{prefix}.{name}{CI}"] = half_width(values)
                found[f"{prefix}.{name}{ERROR}"] = standard_error(values)
        if ".delay" in prefix and prefix.endswith(".permuted"):
            found[f"{prefix.removesuffix('.permuted')}.cumreg"] = found[f"{prefix}.cumreg"]
    return found


def group_of(stream: str) -> str:
    """Return what figures call a stream: its name, or that of its group (`Stream.name`)."""
    return stream.partition("/")[0]


def _prefix(run: Run, one_track: bool) -> str:
    parts = [] if run.player == ROUTER else [run.player]
    parts.append(group_of(run.stream))
    if not one_track:
        parts.append(f"track{int(run.track)}")
    if run.delay:
        parts.append(f"delay{run.delay}")
    parts.append("released" if run.permutation <= RELEASED else "permuted")
    return ".".join(parts)


def _value(played: Played, name: str) -> float:
    return float(played.usd.sum()) if name == "usd" else float(getattr(played, name))

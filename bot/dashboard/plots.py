"""Shapes for the pages' drawings: where things stand in a picture, worked out here so that templates only write."""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from bot.dashboard.facts import DAY_S
from bot.dashboard.series import Series
from bot.dashboard.stats import Point
from templates.escape import usd

Place = Callable[[float], float]
COLOURS = 8
WIDTH, HEIGHT = 560, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 16, 12, 36


@dataclass(frozen=True)
class Dot:
    name: str
    x: float
    y: float
    low: float
    high: float
    colour: str
    label_x: float
    label_y: float
    anchor: str
    words: str
    """What a screen reader says."""
    mine: bool


@dataclass(frozen=True)
class Tick:
    at: float
    label: str


@dataclass(frozen=True)
class Scatter:
    dots: tuple[Dot, ...]
    path: str
    """The frontier as an SVG path; empty where it is one point."""
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]


def colours(models: Iterable[str]) -> dict[str, int]:
    """Return a colour's number for each model, the same on a page wherever it shows."""
    return {name: place % COLOURS for place, name in enumerate(sorted(set(models)))}


def scatter(points: Sequence[Point], paint: Mapping[str, int]) -> Scatter | None:
    """Return cost (across, logarithmic) and success (up) of each way to work; None of nothing."""
    if not points:
        return None
    logs = [math.log10(max(point.usd, 1e-6)) for point in points]
    low, high = min(logs), max(logs)
    if high - low < 0.6:
        low, high = (low + high) / 2 - 0.3, (low + high) / 2 + 0.3
    low, high = low - (high - low) * 0.1, high + (high - low) * 0.18

    def across(usd_: float) -> float:
        return _LEFT + (math.log10(max(usd_, 1e-6)) - low) / (high - low) * (WIDTH - _LEFT - _RIGHT)

    def up(share: float) -> float:
        return HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM)

    dots: list[Dot] = []
    for point in sorted(points, key=lambda one: one.usd):
        x, y = across(point.usd), up(point.success.value or 0.0)
        left = x > WIDTH * 0.68
        label_y = _free(y - 9 if y > 30 else y + 17, x, dots)
        dots.append(
            Dot(
                name=point.name,
                x=x,
                y=y,
                low=up(point.success.low),
                high=up(point.success.high),
                colour="mine" if point.name == "acrouter" else f"m{paint.get(point.name, 0)}",
                label_x=x - 9 if left else x + 9,
                label_y=label_y,
                anchor="end" if left else "start",
                words=f"{point.name}: {(point.success.value or 0) * 100:.0f}% at {usd(point.usd)}",
                mine=point.name == "acrouter",
            )
        )
    return Scatter(tuple(dots), _frontier(points, across, up), _money_ticks(low, high, across), _share_ticks(up))


def chart(series: Series, paint: Mapping[str, int], what: str) -> str:
    """Return the data of a chart over time as JSON for static/dashboard.js. `what`: spend or success."""
    values: Mapping[str, Sequence[float | None]] = series.spend_usd if what == "spend" else series.success
    return json.dumps(
        {
            "kind": "stack" if what == "spend" else "lines",
            "format": "usd" if what == "spend" else "share",
            "bucket": "week from" if series.days == 7 else "day",
            "x": [start * DAY_S for start in series.starts],
            "series": [
                {
                    "label": name,
                    "colour": paint.get(name, 0),
                    "values": [None if one is None else round(one, 6) for one in values[name]],
                }
                for name in sorted(values)
            ],
        }
    )


def _free(wanted: float, x: float, dots: Sequence[Dot]) -> float:
    """Move a label down until it meets no other one."""
    place = wanted
    for _ in range(len(dots) + 1):
        near = [dot for dot in dots if abs(dot.label_y - place) < 13 and abs(dot.x - x) < 110]
        if not near:
            return place
        place = max(dot.label_y for dot in near) + 14
    return place


def _frontier(points: Sequence[Point], across: Place, up: Place) -> str:
    best = sorted((point for point in points if point.on_frontier), key=lambda point: point.usd)
    if len(best) < 2:
        return ""
    places = [(across(point.usd), up(point.success.value or 0.0)) for point in best]
    path = f"M{places[0][0]:.1f} {places[0][1]:.1f}"
    for x, y in places[1:]:
        path += f" H{x:.1f} V{y:.1f}"
    return path


def _money_ticks(low: float, high: float, across: Place) -> tuple[Tick, ...]:
    found = [
        Tick(across(step * 10**power), usd(step * 10**power).rstrip("0").rstrip("."))
        for power in range(math.floor(low), math.ceil(high) + 1)
        for step in (1, 2, 5)
        if low <= math.log10(step * 10**power) <= high
    ]
    return tuple(found[:: max(1, len(found) // 5)])


def _share_ticks(up: Place) -> tuple[Tick, ...]:
    return tuple(Tick(up(share), f"{share * 100:.0f}%") for share in (0.0, 0.25, 0.5, 0.75, 1.0))

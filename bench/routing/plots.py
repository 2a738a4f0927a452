"""Cumulative regret, and what performance costs. Needs the `bench` extra (matplotlib)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.routing.contest import ORDER_FREE, RELEASED, ROUTER, Run
from bench.routing.figures import group_of
from bench.routing.tracks import Played, Track
from store.errors import ConfigurationError

_SHOWN = (
    "peer.linucb",
    "peer.lints",
    "peer.knn",
    "peer.epsilon_greedy",
    "peer.random",
    "peer.acrouter_chain",
    "peer.best_chain",
    "peer.hedge",
)


def plot(played: Mapping[Run, Played], folder: Path) -> list[Path]:
    """Write an SVG of each kind for each stream and track without delay, and return their paths.

    Raises:
        ConfigurationError: matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise ConfigurationError(
            "Plots need matplotlib. Run in acrouter's folder: .venv/bin/pip install '.[bench]'."
        ) from error
    mpl.use("svg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for stream, track in sorted({(run.stream, run.track) for run in played if group_of(run.stream) == run.stream}):
        mine = {run: p for run, p in played.items() if (run.stream, run.track, run.delay) == (stream, track, 0)}
        for name, draw in (("regret", _regret), ("frontier", _frontier)):
            figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
            draw(axes, mine)
            axes.set_title(f"{stream}, track {int(track)} ({Track(track).name.lower().replace('_', '-')})")
            path = folder / f"{stream}_track{int(track)}_{name}.svg"
            figure.savefig(path)
            plt.close(figure)
            written.append(path)
    return written


def _regret(axes: Any, played: Mapping[Run, Played]) -> None:
    for player in (ROUTER, *_SHOWN):
        runs = [p for run, p in played.items() if run.player == player and run.permutation > RELEASED]
        runs = runs or [p for run, p in played.items() if run.player == player]
        if runs:
            mean = np.mean([np.cumsum(p.regrets) for p in runs], axis=0)
            if player.startswith(ORDER_FREE):  # over all permutations each task stands anywhere
                mean = np.linspace(mean[-1] / len(mean), mean[-1], len(mean))
            axes.plot(mean, label=player.removeprefix("peer."), linewidth=2.5 if player == ROUTER else 1)
    axes.set_xlabel("tasks")
    axes.set_ylabel("cumulative regret, mean of the runs")
    axes.legend(fontsize="small")


def _frontier(axes: Any, played: Mapping[Run, Played]) -> None:
    places = {}
    for player in sorted({run.player for run in played if not run.player.startswith("ablation.")}):
        runs = [p for run, p in played.items() if run.player == player]
        places[player] = float(np.mean([p.usd.sum() for p in runs])), float(np.mean([p.avgperf for p in runs]))
    best = not_dominated([place for player, place in places.items() if player != "peer.oracle"])
    axes.plot(*zip(*best, strict=True), color="lightgrey", linewidth=1, zorder=1)
    for player, (usd, performance) in places.items():
        ours = player == ROUTER
        axes.scatter(usd, performance, s=60 if ours else 18, zorder=3 if ours else 2)
        axes.annotate(
            player.removeprefix("peer.").removeprefix("always_"),
            (usd, performance),
            fontsize=9 if ours else 7,
            fontweight="bold" if ours else "normal",
            xytext=(4, -11) if ours else (4, 3),
            textcoords="offset points",
        )
    axes.margins(x=0.15)
    axes.set_xlabel("USD for the whole stream")
    axes.set_ylabel("AvgPerf, %")


def not_dominated(places: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the places (USD, performance) than which no cheaper one is as good, the cheapest first."""
    found: list[tuple[float, float]] = []
    for usd, performance in sorted(places, key=lambda place: (place[0], -place[1])):
        if not found or performance > found[-1][1]:
            found.append((usd, performance))
    return found

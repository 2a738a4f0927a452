"""What `acrouter bench routing` runs, in full and in short."""

import json
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown
from rich.progress import Progress, TimeElapsedColumn

from bench.routing import reference
from bench.routing.coderouterbench import read_id_stream, read_ood_stream
from bench.routing.contest import ORDER_FREE, RELEASED, ROUTER, Arena, Contest, Run, contest, run_all
from bench.routing.drift import SOON, drift_figures, drift_streams
from bench.routing.errors import StreamError
from bench.routing.figures import ERROR, figures, group_of
from bench.routing.plots import plot
from bench.routing.report import tables
from bench.routing.stream import Stream, StreamKind, read_stream
from bench.routing.synthetic import RECIPES, synthetic_stream
from bench.routing.tracks import DELAYS, Played, Track

PROCESSES = 2
SYNTHETIC_SEED = 7


@dataclass(frozen=True)
class Size:
    """How much is run. Counts are permutations of a stream."""

    permutations: int
    delayed: int
    """With a delay."""
    ablations: int
    run_only: int
    """Of the stream without cells that were never run."""
    synthetic: int
    recipes: tuple[str, ...]
    drift: int
    """Streams in which a model gets much better."""
    delays: tuple[int, ...]
    id_tasks: int | None
    seeds: int
    """Of a released order: what exploration draws alone moves its CumReg by a tenth."""
    peers: bool


FULL = Size(
    permutations=100,
    delayed=20,
    ablations=8,
    run_only=10,
    synthetic=3,
    recipes=tuple(RECIPES),
    drift=12,
    delays=DELAYS,
    id_tasks=None,
    seeds=8,
    peers=True,
)
SHORT = Size(
    permutations=3,
    delayed=0,
    ablations=0,
    run_only=0,
    synthetic=3,
    recipes=("mixed", "dear"),
    drift=0,
    delays=(0,),
    id_tasks=300,
    seeds=8,
    peers=False,
)


def run(
    console: Console,
    *,
    data: Path | None = None,
    tasks: Path | None = None,
    results: Path | None = None,
    models: Path | None = None,
    out: Path | None = None,
    short: bool = False,
    accept: bool = False,
) -> dict[str, float]:
    """Run the contest, print its tables and return its figures.

    Args:
        console: for progress and tables.
        data: folder of CodeRouterBench.
        tasks: with `results` and `models`: any other stream, as `read_stream` describes.
        results: see `tasks`.
        models: see `tasks`.
        out: folder for `routing.md`, `routing.json` and the plots; None: none are written.
        short: few permutations and no peers, held against the reference.
        accept: make the short form's figures the new reference.

    Raises:
        StreamError: a file is missing or wrong.
        FigureWorse: in short form, a figure got worse by more than chance explains.
    """
    size = SHORT if short else FULL
    streams = _streams(data, tasks, results, models, size)
    arenas = {stream.name: Arena.of(stream) for stream in streams}
    all_players = contest(arenas, max(size.permutations, size.synthetic))
    runs = planned_runs(all_players, size)
    sizes = {stream.name: len(stream) for stream in streams}
    with Progress(*Progress.get_default_columns(), TimeElapsedColumn(), console=console) as progress:
        bar = progress.add_task("starting", total=sum(sizes[run.stream] for run in runs))

        def ended(run: Run) -> None:
            progress.update(bar, advance=sizes[run.stream], description=f"{run.player} on {run.stream}")

        played = run_all(all_players, runs, PROCESSES, ended)
    found = figures(played) | drift_figures(played, streams)
    text = _text(found, all_players)
    console.print(Markdown(text))
    if out is not None:
        _write(out, text, found, played)
    if accept:
        kept = {name: round(value, 4) for name, value in found.items() if name.removesuffix(ERROR).endswith(".cumreg")}
        path = Path(__file__).with_name("reference.json")
        path.write_text(json.dumps({"figures": kept}, indent=2) + "\n", encoding="utf-8")
    elif short:
        reference.check(found)
    return found


def _streams(
    data: Path | None, tasks: Path | None, results: Path | None, models: Path | None, size: Size
) -> list[Stream]:
    if tasks or results or models:
        if not (tasks and results and models):
            raise StreamError("A stream of your own needs all of --tasks, --results and --models.")
        return [read_stream("own", tasks=tasks, results=results, models=models)]
    streams = [
        synthetic_stream(f"synthetic_{name}", recipe, SYNTHETIC_SEED)
        for name, recipe in RECIPES.items()
        if name in size.recipes
    ]
    streams += drift_streams(size.drift)
    if data is None:
        return streams
    ood = read_ood_stream(data)
    one_shot = read_id_stream(data)
    more = [ood.run_only()] if size.peers else []
    return [ood, *more, one_shot.first(size.id_tasks) if size.id_tasks else one_shot, *streams]


def planned_runs(all_players: Contest, size: Size) -> list[Run]:
    """Return every run of a contest: who plays which stream how often depends on what the stream is there for."""
    runs: list[Run] = []
    for stream, players in all_players.players.items():
        schedule = _schedule(all_players.arenas[stream].stream.kind, size)
        for player in players:
            ablation, order_free = player.startswith("ablation."), player.startswith(ORDER_FREE)
            if (player != ROUTER and not size.peers) or (order_free and not schedule.order_free):
                continue
            if ablation and not schedule.ablations:
                continue
            for track in schedule.tracks:
                for delay in (0,) if ablation or order_free else schedule.delays:
                    most = size.delayed if delay else size.ablations if ablation else schedule.permutations
                    permutations = 0 if order_free else min(most, schedule.permutations)
                    seeds = 1 if delay or order_free or ablation else schedule.seeds
                    numbers = (*(RELEASED - seed for seed in range(seeds)), *range(permutations))
                    runs += [Run(stream, player, track, delay, number) for number in numbers]
    return runs


@dataclass(frozen=True)
class _Schedule:
    """How a kind of stream is played."""

    permutations: int
    seeds: int = 1
    """Of the released order, for players that draw."""
    tracks: tuple[Track, ...] = tuple(Track)
    delays: tuple[int, ...] = (0,)
    ablations: bool = False
    order_free: bool = True
    """Whether players that neither learn nor draw have a part in it."""


def _schedule(kind: StreamKind, size: Size) -> _Schedule:
    match kind:
        case StreamKind.MAIN:
            return _Schedule(size.permutations, size.seeds, delays=size.delays, ablations=True)
        case StreamKind.RUN_ONLY:
            return _Schedule(size.run_only)
        case StreamKind.SINGLE_TURN:
            return _Schedule(0, size.seeds, tracks=(Track.ONE_SHOT,), delays=size.delays)
        case StreamKind.DRAWN:
            return _Schedule(size.synthetic)
        case StreamKind.DRIFT:
            return _Schedule(0, order_free=False)


def _text(found: dict[str, float], all_players: Contest) -> str:
    groups = []
    kinds = {group_of(name): arena.stream.kind for name, arena in all_players.arenas.items()}
    for group, kind in kinds.items():
        one_track = kind is StreamKind.SINGLE_TURN
        groups += [group] if one_track else [f"{group}.track{int(track)}" for track in Track]
    names = {name for players in all_players.players.values() for name in players if name != ROUTER}
    peers = sorted(name for name in names if name.startswith("peer."))
    ablations = sorted(names.difference(peers))
    head = (
        "CumReg and AvgPerf of the released order (the mean over seeds for who draws) and the mean of the "
        "permutations, with 95% intervals; delays are in tasks, means of the permutations. $ is for the whole stream. "
        "On the drift streams a hopeless model gets much better: 'tried' is the share of them (%) in which it was "
        f"tried at all since then, 'found' the share in which half of the later tasks went to it within {SOON} of its "
        "outcomes, 'outcomes' how many that took (median).\n\n"
    )
    parts = [head + tables(found, groups, ["", *peers])]
    if ablations and (shown := tables(found, groups, ["", *ablations])):
        parts.append("Ablations\n\n" + shown)
    return "\n\n".join(parts) + "\n"


def _write(out: Path, text: str, found: dict[str, float], played: dict[Run, Played]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / "routing.md").write_text(text, encoding="utf-8")
    (out / "routing.json").write_text(json.dumps({"figures": found}, indent=2) + "\n", encoding="utf-8")
    plot(played, out)

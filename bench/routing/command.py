"""What `acrouter bench routing` runs, in full and in short."""

import json
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown
from rich.progress import Progress, TimeElapsedColumn

from bench.routing import reference
from bench.routing.contest import ORDER_FREE, RELEASED, ROUTER, Arena, Contest, Run, contest, run_all
from bench.routing.drift import SOON, drift_figures, drift_streams
from bench.routing.errors import StreamError
from bench.routing.figures import CI, figures, group_of
from bench.routing.id_statistics import read_id_stream
from bench.routing.plots import plot
from bench.routing.report import tables
from bench.routing.stream import Stream, read_stream
from bench.routing.synthetic import DRIFT_PREFIX, RECIPES, synthetic_stream
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
    id_seeds: int
    """Of the ID stream's released order: what exploration draws alone moves its CumReg by a tenth."""
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
    id_seeds=8,
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
    id_seeds=3,
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
        FigureWorse: in short form, a figure got worse beyond its interval.
    """
    size = SHORT if short else FULL
    streams = _streams(data, tasks, results, models, size)
    arenas = {stream.name: Arena.of(stream) for stream in streams}
    all_players = contest(arenas, max(size.permutations, size.synthetic))
    runs = _runs(all_players, size)
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
        kept = {name: round(value, 4) for name, value in found.items() if name.removesuffix(CI).endswith(".cumreg")}
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
    ood = read_stream(
        "ood", tasks=data / "ood176_tasks.jsonl", results=data / "ood176_results_long.csv", models=data / "models.json"
    )
    one_shot = read_id_stream(data)
    more = [ood.run_only()] if size.peers else []
    return [ood, *more, one_shot.first(size.id_tasks) if size.id_tasks else one_shot, *streams]


def _runs(all_players: Contest, size: Size) -> list[Run]:
    runs: list[Run] = []
    for stream, players in all_players.players.items():
        published = stream == "id"
        drift = stream.startswith(DRIFT_PREFIX)
        at_once = drift or stream.startswith("synthetic_") or stream.endswith(".run_only")
        tracks = (Track.ONE_SHOT,) if published else tuple(Track)
        for player in players:
            if player != ROUTER and not size.peers:
                continue
            if player.startswith("ablation.") and (published or at_once):
                continue
            if drift and _order_free(player):
                continue
            permutations = _permutations(stream, player, size)
            for track in tracks:
                for delay in (0,) if at_once or player.startswith("ablation.") else size.delays:
                    kept = min(permutations, size.delayed) if delay else permutations
                    if _order_free(player) and delay:
                        continue
                    seeds = size.id_seeds if published and not delay and not _order_free(player) else 1
                    released = [RELEASED - seed for seed in range(seeds)]
                    runs += [Run(stream, player, track, delay, number) for number in (*released, *range(kept))]
    return runs


def _order_free(player: str) -> bool:
    return any(player.startswith(name) for name in ORDER_FREE)


def _permutations(stream: str, player: str, size: Size) -> int:
    if _order_free(player):
        return 0
    if stream == "id" or stream.startswith(DRIFT_PREFIX):
        return 0
    if stream.startswith("synthetic_"):
        return size.synthetic
    most = size.run_only if stream.endswith(".run_only") else size.permutations
    return min(most, size.ablations) if player.startswith("ablation.") else most


def _text(found: dict[str, float], all_players: Contest) -> str:
    groups = []
    for stream in dict.fromkeys(map(group_of, all_players.arenas)):
        groups += [stream] if stream == "id" else [f"{stream}.track{int(track)}" for track in Track]
    names = {name for players in all_players.players.values() for name in players if name != ROUTER}
    peers = sorted(name for name in names if name.startswith("peer."))
    ablations = sorted(names.difference(peers))
    head = (
        "CumReg and AvgPerf of the released order and the mean of the permutations, with 95% intervals; "
        "delays are in tasks, means of the permutations. $ is for the whole stream. On the drift streams a hopeless "
        f"model gets much better: 'found' is the share of them (%) in which half of the later tasks went to it within "
        f"{SOON} of its outcomes, 'outcomes' how many that took (median).\n\n"
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

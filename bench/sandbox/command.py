"""What `acrouter bench sandbox` runs."""

import statistics
import tempfile
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.sandbox.checkouts import measure_checkout, measure_setup
from bench.sandbox.leaks import count_leaks
from bench.sandbox.speed import Speed, compare
from bench.sandbox.verdicts import Judged, judge_all
from bot.demo.bugs import find_bug, load_catalogue
from bot.demo.materialise import BugRepository, materialise
from bot.demo.package_index import pip_index_settings
from sandbox.checkout import Mirror
from sandbox.docker_backend import DockerBackend
from sandbox.types import Limits, SandboxSpec
from store.settings import load_settings

SETUP_BUG = "boltons-singularize-double-s"
"""Its project is installed by its own metadata: a set-up with something to do."""
_LABELS = {"task": "bench-sandbox", "owner": "bench"}


@dataclass(frozen=True)
class Size:
    """How much is run."""

    rounds: int
    commands: int
    one_by_one: int
    at_once: int
    megabytes: int
    bugs: Sequence[str]


FULL = Size(15, 10, 20, 4, 200, [bug.name for bug in load_catalogue()])
SHORT = Size(3, 3, 2, 2, 20, ["xmltodict-none-attribute"])


def run(console: Console, *, short: bool = False) -> dict[str, float]:
    """Measure and print, and return the figures by their names.

    Args:
        console: for progress and tables.
        short: few rounds, a small repository, one bug.

    Raises:
        SandboxUnavailable, ImageError, PeerMissing, DownloadError: something that it needs is missing.
    """
    folder = (load_settings().data_dir / "bench").absolute()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        return measure(console, SHORT if short else FULL, Path(scratch), folder)


def measure(console: Console, size: Size, scratch: Path, cache: Path) -> dict[str, float]:
    """Measure in `scratch`; `cache` keeps what was downloaded. See `run`."""
    # An instance of its own: what others run on this daemon is neither counted nor touched.
    instance = f"bench-{uuid.uuid4().hex}"
    backend = DockerBackend(load_settings().sandbox_image, Limits(), instance=instance)
    backend.ping()
    spec = SandboxSpec(backend.ensure_base(), _LABELS)
    try:
        with console.status("starts and commands, in turns with mini-swe-agent's DockerEnvironment"):
            speed = compare(backend, spec, rounds=size.rounds, commands=size.commands)
        console.print(_speed_table(speed["ours"], speed["mini"]))
        with console.status("leaks"):
            leaks = count_leaks(backend, instance, spec, one_by_one=size.one_by_one, at_once=size.at_once)
        console.print("Left behind: " + ", ".join(f"{count} {kind}" for kind, count in leaks.items()), highlight=False)
        with console.status(f"checkout of {size.megabytes} MB"):
            checkout = measure_checkout(backend, spec, scratch, megabytes=size.megabytes, rounds=size.rounds)
        with console.status("set-up"):
            setup = _setup_times(backend, scratch, cache, size.rounds)
        with console.status("verdicts on real bugs") as status:
            judged = []
            for found in judge_all(backend, [_repository(name, cache) for name in size.bugs], scratch):
                judged.append(found)
                status.update(f"verdicts on real bugs: {found.bug}, {found.kind}")
        console.print(_verdict_table(judged))
        for found in judged:
            if not found.agrees:
                console.print(disagreement(found), soft_wrap=True, markup=False)
    finally:
        backend.remove_leftovers(frozenset)
    return {
        "sandbox.start.ratio_to_mini": speed["ours"].start_s / speed["mini"].start_s,
        "sandbox.exec.ratio_to_mini": speed["ours"].execute_s / speed["mini"].execute_s,
        "sandbox.start_s": speed["ours"].start_s,
        "sandbox.exec_s": speed["ours"].execute_s,
        "sandbox.leaks": float(sum(leaks.values())),
        "sandbox.checkout_s": statistics.median(checkout["checkout"]),
        "sandbox.unpack_s": statistics.median(checkout["unpack"]),
        "sandbox.setup_cached_s": statistics.median(setup),
        "verdict.agreement": sum(found.agrees for found in judged) / len(judged),
    }


def _setup_times(backend: DockerBackend, scratch: Path, cache: Path, rounds: int) -> list[float]:
    repository = _repository(SETUP_BUG, cache)
    archive = scratch / "setup.tar"
    Mirror.from_local(repository.git_dir, scratch / "setup.git").mirror.archive(repository.base_sha, archive)
    return measure_setup(backend, archive, _LABELS, rounds=rounds)


def _repository(name: str, cache: Path) -> BugRepository:
    return materialise(
        find_bug(name), cache / "repositories", downloads=cache / "downloads", index=pip_index_settings()
    )


def _speed_table(ours: Speed, mini: Speed) -> Table:
    shown = Table("median s (fastest, slowest)", "acrouter", "mini-swe-agent", title="Starting, and one command")
    for name, pair in (("start", (ours.start, mini.start)), ("execute", (ours.execute, mini.execute))):
        cells = [f"{statistics.median(times):.3f} ({min(times):.3f}, {max(times):.3f})" for times in pair]
        shown.add_row(name, *cells)
    return shown


def disagreement(found: Judged) -> str:
    """Return a sentence on a verdict that is not what running the patch says."""
    said = f"the verdict is {found.verdict} ({found.score:.2f}), by running it is {found.truth}"
    return f"{found.bug}, {found.kind}: {said}. {found.summary}"


def _verdict_table(judged: Sequence[Judged]) -> Table:
    shown = Table("kind of patch", "patches", "verdict agrees", "verdicts", title="Verdicts and hidden tests")
    for kind in dict.fromkeys(found.kind for found in judged):
        of_kind = [found for found in judged if found.kind == kind]
        verdicts = Counter(found.verdict for found in of_kind)
        agreeing = sum(found.agrees for found in of_kind)
        said = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
        shown.add_row(kind, str(len(of_kind)), str(agreeing), said)
    return shown

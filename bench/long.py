"""`acrouter bench long`: what an installation takes after many tasks, and whether anything of it grows without end.

acrouter runs as a program of its own, all in one process on SQLite, so that what is measured is acrouter's alone; the
local GitHub and the scripted models are in the bench's process. Issues about real bugs of several projects go through
it in turn, one after the other, from the label to the reported PR. Each PR is closed without a merge, so that its bug
is still there for a later issue.

After each task, when nothing is to be done, this is looked at:

- memory (VmRSS), open file descriptors and threads of the process and those below it, as /proc tells them;
- the sizes of the database with its write-ahead log, of the rest of the data folder, of the temporary files and of
  the log;
- the containers that are left of this installation, where the sandbox is Docker's.

What grows is told as the slope of the line through the second half of the tasks: a process that has just begun still
imports, fills its caches and opens its connections.
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import docker
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bench.errors import BenchError
from bench.processes import Use, require_proc, use_with_children
from bench.serving import serving
from bench.waiting import wait_for_task
from bot.assembly import instance_name, make_backend
from bot.demo.bugs import find_bug
from bot.demo.materialise import BugRepository, materialise
from bot.demo.package_index import pip_index_settings
from bot.demo.scene import Scene, as_environment, set_scene
from bot.demo.stage import only_demo
from bot.demo.throwaway import free_port
from sandbox.docker_backend import INSTANCE_LABEL
from sandbox.types import Backend, Progress
from store.logs import configure_logging
from store.settings import Settings, load_settings
from store.states import TaskState

BUGS = (
    "xmltodict-none-attribute",
    "cachetools-shallow-copy",
    "tomlkit-out-of-order-tables",
    "boltons-singularize-double-s",
)
TASKS = 100
_LAST_LINES = 20
_TEMPORARY = "tmp"
_NO_LIMITS: Mapping[str, object] = {
    "day_budget_usd": 100_000.0,
    "month_budget_usd": 100_000.0,
    # Each closed PR says that its model is poor: weighed against money, the dear ones would soon not be tried.
    "reward_usd_weight": 0.0,
}
"""With these no task ends without a PR, however many there were before."""


@dataclass(frozen=True)
class Sample:
    """What the installation takes after a task, and how long the task took until its PR was reported."""

    use: Use
    database_bytes: int
    data_bytes: int
    """The data folder without the database and the temporary files."""
    temporary_bytes: int
    log_bytes: int
    containers: int
    seconds: float


@dataclass(frozen=True)
class _Row:
    name: str
    of: Callable[[Sample], float]


_ROWS = (
    _Row("memory, MB", lambda sample: sample.use.resident_kb / 1024),
    _Row("open file descriptors", lambda sample: sample.use.descriptors),
    _Row("threads", lambda sample: sample.use.threads),
    _Row("database, kB", lambda sample: sample.database_bytes / 1024),
    _Row("rest of the data folder, kB", lambda sample: sample.data_bytes / 1024),
    _Row("temporary files, kB", lambda sample: sample.temporary_bytes / 1024),
    _Row("log, kB", lambda sample: sample.log_bytes / 1024),
    _Row("containers left", lambda sample: sample.containers),
    _Row("seconds of a task", lambda sample: sample.seconds),
)


def run(console: Console, *, count: int = TASKS) -> dict[str, float]:
    """Measure and print, and return the figures by their names."""
    folder = (load_settings().data_dir / "bench").absolute()
    with only_demo(folder):
        samples = measure(console, folder, BUGS, count=count)
    console.print(table(samples))
    return figures(samples)


def figures(samples: Sequence[Sample]) -> dict[str, float]:
    """Return what is told of a run: what is there at its end, and what a task of its second half adds."""
    last = samples[-1]
    return {
        "long.rss_mb": last.use.resident_kb / 1024,
        "long.rss_growth_kb_per_task": growth([sample.use.resident_kb for sample in samples]),
        "long.fds": float(last.use.descriptors),
        "long.threads": float(last.use.threads),
        "long.database_kb_per_task": growth([sample.database_bytes / 1024 for sample in samples]),
        "long.log_kb_per_task": growth([sample.log_bytes / 1024 for sample in samples]),
        "long.left_containers": float(max(sample.containers for sample in samples)),
    }


def table(samples: Sequence[Sample]) -> Table:
    """Return what there was after the first task, a quarter, half and all, and what a task of the second half added."""
    count = len(samples)
    moments = sorted({1, max(count // 4, 1), max(count // 2, 1), count})
    shown = Table("", *(f"after {moment}" for moment in moments), "growth a task", title=f"{count} tasks")
    for row in _ROWS:
        values = [row.of(sample) for sample in samples]
        shown.add_row(row.name, *(f"{values[moment - 1]:,.1f}" for moment in moments), f"{growth(values):+.3f}")
    return shown


def growth(values: Sequence[float]) -> float:
    """Return by how much the values of the second half grow from one to the next (least squares)."""
    half = values[(len(values) - 1) // 2 :]
    return statistics.linear_regression(range(len(half)), half).slope if len(half) > 1 else 0.0


def measure(console: Console, folder: Path, bugs: Sequence[str], *, count: int) -> list[Sample]:
    """Return what the installation took after each of `count` tasks, in turn about the bugs.

    Raises:
        BenchError: this is no Linux, a task did not end with a PR, or acrouter ended.
        SandboxUnavailable, ImageError, DownloadError: something that it needs is missing.
    """
    require_proc()
    with console.status("downloading the releases"):
        index = pip_index_settings()
        repositories = [
            materialise(find_bug(name), folder / "repositories", downloads=folder / "downloads", index=index)
            for name in bugs
        ]
    with (
        console.status("starting") as status,
        installed(folder, repositories, lambda line: status.update(escape(line))) as installation,
    ):
        console.print(f"Sandbox: {installation.backend.name}.", highlight=False)
        samples = []
        for number in range(count):
            status.update(f"task {number + 1} of {count}")
            seconds = installation.play(repositories[number % len(repositories)])
            samples.append(installation.sample(seconds))
    return samples


@dataclass(frozen=True)
class Installation:
    """acrouter as an operator starts it, and what is around it."""

    scene: Scene
    settings: Settings
    backend: Backend
    process: subprocess.Popen[bytes]
    log: Path

    def play(self, repository: BugRepository) -> float:
        """Lead one issue to a PR and close it; return the seconds from the label to the reported PR.

        Raises:
            BenchError: it did not come to a PR, or acrouter ended.
        """
        github, name = self.scene.github, _name(repository)
        issue = github.open_issue(repository.bug.title, repository.bug.issue, repository=name)
        began = time.time()
        github.label(issue, self.settings.trigger_label, repository=name)
        ended = wait_for_task(self.scene.database, name, issue, TaskState.PUBLISHED, look=self._require_running)
        github.close(github.pull_requests(repository=name)[-1]["number"], repository=name)
        wait_for_task(self.scene.database, name, issue, TaskState.CLOSED, look=self._require_running)
        return ended - began

    def sample(self, seconds: float) -> Sample:
        """Look at everything now, after a task that took so long."""
        data, database = self.settings.data_dir, self.scene.database
        temporary = size_of(data / _TEMPORARY)
        kept = size_of(database) + size_of(database.with_name(f"{database.name}-wal"))
        return Sample(
            use=use_with_children(self.process.pid),
            database_bytes=kept,
            data_bytes=size_of(data) - kept - temporary,
            temporary_bytes=temporary,
            log_bytes=size_of(self.log),
            containers=self._containers(),
            seconds=seconds,
        )

    def _require_running(self) -> None:
        if self.process.poll() is not None:
            raise BenchError(f"acrouter ended with {self.process.returncode}.")

    def _containers(self) -> int:
        if self.backend.name != "docker":
            return 0
        api = docker.from_env().api
        try:
            label = f"{INSTANCE_LABEL}={instance_name(self.settings)}"
            return len(api.containers(all=True, filters={"label": label}))
        finally:
            api.close()


@contextmanager
def installed(folder: Path, repositories: Sequence[BugRepository], progress: Progress) -> Iterator[Installation]:
    """Start acrouter on an empty data folder, with the repositories on its GitHub, and end it afterwards.

    Raises:
        BenchError: it did not come up, or something was wrong afterwards; the message has the end of its log.
    """
    port, state, log = free_port(), folder / "state", folder / "long.log"
    with set_scene(state, repositories, web_url=f"http://127.0.0.1:{port}", data_dir=state) as scene:
        configure_logging(load_settings(**scene.settings))
        # An operator's own settings hold as in the demo, but for those that are given here.
        given = {**scene.settings, **_NO_LIMITS, "log_level": "info"}
        settings = load_settings(**given)
        backend = make_backend(settings)
        backend.ensure_base(progress=progress)  # here, where its steps are seen
        for repository in repositories:
            scene.github.create_repository(_name(repository), repository.git_dir)
        (state / _TEMPORARY).mkdir()
        environment = {**os.environ, **as_environment(given), "TMPDIR": str(state / _TEMPORARY)}
        command = [sys.executable, "-m", "bot", "up", "--host", "127.0.0.1", "--port", str(port)]
        try:
            with serving(command, port, environment, log=log) as process:
                yield Installation(scene, settings, backend, process, log)
        except BenchError as error:
            raise BenchError(f"{error}\n{last_words(log)}") from error


def _name(repository: BugRepository) -> str:
    return f"bench/{repository.bug.project}"


def size_of(path: Path) -> int:
    """Return the bytes of a file, or of all files of a folder; what is not there has none."""
    try:
        if not path.is_dir():
            return path.stat().st_size
        return sum(size_of(each) for each in path.iterdir() if not each.is_symlink())
    except FileNotFoundError:  # a temporary file has gone meanwhile
        return 0


def last_words(log: Path) -> str:
    """Return the end of a log, with its place."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    return "\n".join([f"{log} ends with:", *lines[-_LAST_LINES:]])

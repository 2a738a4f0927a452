"""`acrouter bench pipeline`: what acrouter adds to a task besides the model's time and the tests'.

Ten issues about one small real bug go through everything that a person's label starts, one after the other, in one
process: webhook, queue, a working copy, routing, the agent in its sandbox, verification, a PR on the local GitHub, the
status comment, the check run and the labels. A first task, which imports, clones and sets up, warms it and is not
counted.

`pipeline.overhead_s` is the median over the tasks of the time from the delivery's arrival (`delivery.received_at`)
until its PR is published and reported, without

- the time inside the models' endpoint (scripted models that answer at once), as the endpoint itself measures it;
- the commands that the model asked for, and the runs of the tests and of the issue's examples, as the sandbox measures
  them.

All else counts: starting and ending sandboxes, the way into them and back, LiteLLM and HTTP to the model, git, the
database, and GitHub's API over the loopback address without pauses between writes. Nothing of it is hidden by what is
left out: where acrouter works while a test runs, that time is the test's.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from sqlmodel import col, select

from bench.stopwatch import Command, Span, WatchedBackend, own_seconds
from bench.waiting import wait_for_task
from bot.demo.bugs import find_bug
from bot.demo.materialise import BugRepository, materialise
from bot.demo.package_index import pip_index_settings
from bot.demo.scripted.server import Call
from bot.demo.stage import Stage, only_demo, set_stage
from sandbox.types import Backend
from store.settings import load_settings
from store.states import TaskState
from store.tables import Delivery, History, Task

BUG = "xmltodict-none-attribute"
REPOSITORY = "bench/xmltodict"
TASKS = 10

STAGES: Mapping[TaskState, str] = {
    TaskState.QUEUED: "queue",
    TaskState.PREPARING: "prepare",
    TaskState.ROUTING: "route",
    TaskState.ATTEMPTING: "attempt",
    TaskState.VERIFYING: "verify",
    TaskState.PUBLISHING: "publish",
    TaskState.PUBLISHED: "report",
}
"""By the state that a stage begins with. What comes before the first state is `receive`."""


@dataclass(frozen=True)
class Measured:
    """One task: acrouter's own seconds by stage, and what is not acrouter's."""

    own_s: Mapping[str, float]
    excluded_s: float

    @property
    def overhead_s(self) -> float:
        return sum(self.own_s.values())


def run(console: Console) -> dict[str, float]:
    """Measure and print, and return the figures by their names."""
    folder = (load_settings().data_dir / "bench").absolute()
    with only_demo(folder):
        measured = measure(console, folder, tasks=TASKS)
    console.print(table(measured))
    return {
        "pipeline.overhead_s": statistics.median(task.overhead_s for task in measured),
        "pipeline.overhead_max_s": max(task.overhead_s for task in measured),
    }


def measure(console: Console, folder: Path, *, tasks: int) -> list[Measured]:
    """Return what each of `tasks` tasks took, after one that warms everything up.

    Raises:
        BenchError: a task did not end with a PR.
        SandboxUnavailable, ImageError, DownloadError: something that it needs is missing.
    """
    with console.status("downloading the release"):
        repository = materialise(
            find_bug(BUG), folder / "repositories", downloads=folder / "downloads", index=pip_index_settings()
        )
    watched: list[WatchedBackend] = []

    def watch(backend: Backend) -> Backend:
        watched.append(WatchedBackend(backend))
        return watched[0]

    with (
        console.status("starting") as status,
        set_stage(
            folder, [repository], paid_model="", progress=lambda line: status.update(escape(line)), watch=watch
        ) as stage,
    ):
        console.print(f"Sandbox: {watched[0].name}.", highlight=False)
        stage.github.create_repository(REPOSITORY, repository.git_dir)
        measured = []
        for number in range(tasks + 1):
            status.update(f"task {number} of {tasks}" if number else "a first task, which is not counted")
            measured.append(_measure_one(stage, watched[0], repository))
    return measured[1:]


def table(measured: Sequence[Measured]) -> Table:
    """Return the stages with the median of each, the fastest and the slowest."""
    shown = Table("stage", "median s", "min s", "max s", title="acrouter's own time a task")
    rows = {name: [task.own_s.get(name, 0.0) for task in measured] for name in ("receive", *STAGES.values())}
    rows["all of it"] = [task.overhead_s for task in measured]
    rows["model, commands and tests (left out)"] = [task.excluded_s for task in measured]
    for name, seconds in rows.items():
        values = (statistics.median(seconds), min(seconds), max(seconds))
        shown.add_row(name, *(f"{value:.3f}" for value in values))
    return shown


def _measure_one(stage: Stage, backend: WatchedBackend, repository: BugRepository) -> Measured:
    assert stage.endpoint is not None
    calls, commands = len(stage.endpoint.calls), len(backend.commands)
    number = stage.github.open_issue(repository.bug.title, repository.bug.issue)
    stage.github.label(number, stage.runtime.settings.trigger_label)
    ended = wait_for_task(_database(stage), REPOSITORY, number, TaskState.PUBLISHED)
    spans = _stages(stage, number, ended)
    excluded = excluded_spans(stage.endpoint.calls[calls:], backend.commands[commands:])
    own: dict[str, float] = {}
    for name, span in spans:
        own[name] = own.get(name, 0.0) + own_seconds(span, excluded)
    whole = Span(spans[0][1].began, ended)
    return Measured(own, whole.ended - whole.began - own_seconds(whole, excluded))


def excluded_spans(calls: Iterable[Call], commands: Iterable[Command]) -> list[Span]:
    """Return when the model thought, and when what it asked for, or a test or example, ran."""
    calls = list(calls)
    asked_for = {call.command for call in calls}
    return [
        *(Span(call.began, call.ended) for call in calls),
        *(command.span for command in commands if command.text in asked_for or _is_test(command.text)),
    ]


def _is_test(command: str) -> bool:
    return "--junitxml=" in command or "/acrouter-example-" in command


def _database(stage: Stage) -> Path:
    path = stage.runtime.database.engine.url.database
    assert path is not None
    return Path(path)


def _stages(stage: Stage, issue: int, ended: float) -> list[tuple[str, Span]]:
    """Return the stages that the task's history tells, in their order, from the delivery's arrival on."""
    with stage.runtime.database.session() as session:
        task = session.exec(select(Task).where(Task.target_number == issue)).one()
        delivery = session.exec(select(Delivery).where(Delivery.guid == task.delivery_guid)).one()
        rows = session.exec(select(History).where(History.task_id == task.id).order_by(col(History.id))).all()
    marks = [("receive", delivery.received_at.timestamp()), *((STAGES[row.state], row.at.timestamp()) for row in rows)]
    ends = [*(at for _, at in marks[1:]), ended]
    return [(name, Span(began, end)) for (name, began), end in zip(marks, ends, strict=True)]

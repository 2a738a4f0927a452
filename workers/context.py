"""The context of a task: its words, its commit, how its tests run and the image that they run in."""

import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from routing import Dimension, RoutingTask
from routing.dimension import classify, detect_language
from sandbox.ahead import AHEAD, SandboxesAhead
from sandbox.notes import contributor_notes
from sandbox.patch import BLOCKED, PatchRules
from sandbox.results import TestCommand
from sandbox.testing import discover
from sandbox.types import Limits, SandboxSpec
from store.settings import Settings
from store.states import TaskState
from workers.environments import Environment, WithServices, prepare_environment
from workers.run import Run
from workers.stop_watch import ended_by_a_stop
from workers.targets import Source, Target


@dataclass(frozen=True)
class Work:
    """All that an attempt needs to know of its task."""

    source: Source
    routing_task: RoutingTask
    archive: Path
    """The tree at the pinned commit, as a tar; gone when the context ends."""
    environment: Environment
    sandbox: SandboxSpec
    """Of every sandbox of this task."""
    sandboxes: SandboxesAhead
    setup: tuple[str, ...]
    """The commands that made the image."""
    test_command: TestCommand | None
    rules: PatchRules
    hint: str
    notes: str
    """The repository's own for contributors."""


@contextmanager
def prepared(run: Run, target: Target) -> Iterator[Work]:
    """Fetch a task's context and keep its files for as long as the block lasts."""
    run.advance(TaskState.PREPARING, "Reading the task and preparing the repository.")
    source = target.fetch(run)
    with tempfile.TemporaryDirectory(prefix="acrouter-") as folder:
        archive = Path(folder) / "tree.tar"
        source.mirror.archive(source.base_sha, archive)
        run.check()
        limits = sandbox_limits(run.runtime.settings)
        with ended_by_a_stop(run):
            environment = prepare_environment(
                run,
                source.config,
                archive,
                labels(run),
                limits,
                shared_with=source.shares_setup_with,
                missing_already=source.missing,
            )
        spec = SandboxSpec(environment.image, labels(run), limits)
        task = run.task()
        # A person's word, by a label or the repository's configuration, goes before what the text looks like.
        asked = task.dimension or source.config.dimension
        dimension = Dimension(asked) if asked else classify(source.title, source.text, trigger=task.trigger.value)
        language = detect_language(_paths(archive))
        run.update(dimension=dimension.value, language=language)
        opener = WithServices(run.runtime.backend, environment.services)
        # A service that starts keeps nobody's core busy: it is waited for.
        at_once = AHEAD if environment.services else None
        with SandboxesAhead(opener, spec, at_once=at_once) as sandboxes:
            yield Work(
                source=source,
                routing_task=RoutingTask(
                    key=f"task:{run.task_id}",
                    text=f"{source.title}\n\n{source.text}",
                    dimension=dimension,
                    repository=source.repository,
                    language=language,
                    title=source.title,
                    link=source.link,
                    trigger=task.trigger.value,
                ),
                archive=archive,
                environment=environment,
                sandbox=spec,
                sandboxes=sandboxes,
                setup=environment.setup,
                test_command=discover(archive, source.config.test or None),
                rules=PatchRules(blocked=(*BLOCKED, *source.config.blocked_paths), allowed=source.config.allowed_paths),
                hint=task.hint,
                notes=contributor_notes(archive),
            )


def sandbox_limits(settings: Settings) -> Limits:
    return Limits(
        memory_mb=settings.sandbox_memory_mb,
        cpus=settings.sandbox_cpus,
        pids=settings.sandbox_pids,
        disk_mb=settings.sandbox_disk_mb,
        service_memory_mb=settings.service_memory_mb,
        service_cpus=settings.service_cpus,
    )


def labels(run: Run) -> dict[str, str]:
    """Return the labels by which a sandbox of this task is found again."""
    return {"task": str(run.task_id), "owner": run.runtime.name}


def _paths(archive: Path) -> list[str]:
    with tarfile.open(archive) as tree:
        return [member.name for member in tree if member.isfile()]

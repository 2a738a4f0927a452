"""Finds the target of a task."""

from store.states import TaskKind
from workers.errors import PipelineError
from workers.forge_target import ForgeTarget
from workers.local_target import LocalTarget
from workers.reports import repository_ref
from workers.run import Run
from workers.targets import Target


def target_of(run: Run) -> Target:
    """Return where a task comes from and where its answer goes.

    Raises:
        PipelineError: this process has no access to it.
    """
    task = run.task()
    if task.kind is TaskKind.LOCAL:
        return LocalTarget()
    if run.runtime.forge is None:
        raise PipelineError("This worker has no GitHub App credentials, so it cannot work on tasks from GitHub.")
    assert task.repository_id is not None
    return ForgeTarget(run.runtime.forge, repository_ref(run.runtime, task.repository_id))

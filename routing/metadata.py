"""A task's metadata: what is known of it besides its words and its dimension. Found by rules, without a network."""

from dataclasses import dataclass

from routing.dimension import has_failing_test, has_traceback
from routing.types import RoutingTask


@dataclass(frozen=True)
class TaskMetadata:
    """What voters may look at besides the text."""

    language: str
    """Lower case; empty: unknown."""
    size: int
    """Characters of the title and the text."""
    has_traceback: bool
    has_failing_test: bool
    repository: str
    trigger: str
    """Where the task comes from, a word of `store.states.Trigger`; empty: unknown."""


def metadata(task: RoutingTask) -> TaskMetadata:
    """Return the metadata of a task."""
    size = len(task.text) + (0 if task.text.startswith(task.title) else len(task.title))
    return TaskMetadata(
        language=task.language,
        size=size,
        has_traceback=has_traceback(task.text),
        has_failing_test=has_failing_test(task.text),
        repository=task.repository,
        trigger=task.trigger,
    )

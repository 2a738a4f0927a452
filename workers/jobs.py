"""The three jobs of a worker process, whichever queue woke it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import structlog

from workers.pipeline import work_on
from workers.reconciler import reconcile
from workers.runtime import Worker
from workers.sweeps import sweep

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class WorkerJobs:
    worker: Worker

    def deliver(self, delivery_id: int) -> None:
        """Handle one stored delivery."""
        self.worker.handle_delivery(delivery_id)

    def work(self, task_id: int) -> None:
        """Work on one task."""
        work_on(self.worker.runtime, task_id)

    def reconcile(self) -> None:
        """Bring back what was lost here, do the chores, then look for what GitHub could not tell us."""
        reconcile(self.worker.runtime)
        for chore in self.worker.chores:
            try:
                chore()
            except Exception as error:  # noqa: BLE001  (one that fails, e.g. while GitHub is down, must not stop the rest)
                _log.warning("chore.failed", chore=_name(chore), exc_info=error)
        sweep(self.worker.runtime)


def _name(chore: Callable[[], object]) -> str:
    """A chore's function or class; what it works with, all of the settings, would fill the log."""
    function = chore.func if isinstance(chore, partial) else chore
    return str(getattr(function, "__name__", type(function).__name__))

"""The three jobs of a worker process, whichever queue woke it."""

from dataclasses import dataclass

from workers.pipeline import work_on
from workers.reconciler import reconcile
from workers.runtime import Worker


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
        """Bring back what was lost."""
        reconcile(self.worker.runtime)
        for chore in self.worker.chores:
            chore()

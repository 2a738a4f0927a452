"""The three jobs of a worker process, whichever queue woke it."""

from dataclasses import dataclass

from workers.pipeline import work_on
from workers.reconciler import reconcile
from workers.runtime import Worker
from workers.sweeps import sweep


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
        """Bring back what was lost here, then what GitHub could not tell us."""
        reconcile(self.worker.runtime)
        self.worker.sweep_deliveries(self.worker.runtime)
        sweep(self.worker.runtime)

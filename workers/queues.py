"""The two queues. Both only wake a worker: what there is to do stands in the database."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Protocol

import structlog

_log = structlog.get_logger(__name__)


class Jobs(Protocol):
    """What a woken worker does."""

    def deliver(self, delivery_id: int) -> None: ...

    def work(self, task_id: int) -> None: ...


class LocalQueue:
    """Threads of this process: the embedded queue. Deliveries never wait for tasks."""

    def __init__(self, concurrency: int) -> None:
        self._deliveries = ThreadPoolExecutor(2, thread_name_prefix="deliveries")
        self._tasks = ThreadPoolExecutor(concurrency, thread_name_prefix="tasks")
        self._jobs: Jobs | None = None
        self._lock = threading.Lock()
        self._running: set[Future[None]] = set()
        self._known: set[int] = set()
        """Tasks that are waiting here or worked on: waking them twice would fill the queue."""

    def start(self, jobs: Jobs) -> None:
        """Say who does the work; nothing is done before."""
        self._jobs = jobs

    def deliver(self, delivery_id: int) -> None:
        if self._jobs is not None:
            self._submit(self._deliveries, self._jobs.deliver, delivery_id)

    def work(self, task_id: int) -> None:
        if self._jobs is None:
            return
        with self._lock:
            if task_id in self._known:
                return
            self._known.add(task_id)
        self._submit(self._tasks, self._work, task_id)

    def close(self, timeout_s: float | None = None) -> bool:
        """Take nothing more, wait for what runs, and return whether it has ended within `timeout_s` (None: however
        long it takes). What waits is in the database for the next process.
        """
        self._deliveries.shutdown(wait=False, cancel_futures=True)
        self._tasks.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            running = set(self._running)
        return not wait(running, timeout_s).not_done

    def _work(self, task_id: int) -> None:
        assert self._jobs is not None
        with self._lock:
            self._known.discard(task_id)  # from here on the lease tells
        self._jobs.work(task_id)

    def _submit(self, pool: ThreadPoolExecutor, job: Callable[[int], None], number: int) -> None:
        try:
            future = pool.submit(job, number)
        except RuntimeError:  # the pool is closed; the reconciler of the next process finds the work
            _log.info("queue.closed", number=number)
            return
        with self._lock:
            self._running.add(future)
        future.add_done_callback(self._ended)

    def _ended(self, future: "Future[None]") -> None:
        with self._lock:
            self._running.discard(future)
        _log_failure(future)


def _log_failure(future: "Future[None]") -> None:
    if not future.cancelled() and (error := future.exception()) is not None:
        _log.error("job.failed", exc_info=error)

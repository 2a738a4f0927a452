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


class Turns:
    """Lets at most `at_once` tasks of this process be worked on, whichever threads bring them.

    One that comes beyond them waits here, and its thread is free again. The first task that ends is followed by it;
    where the process ends before, or a task of it crashes, the reconciler wakes it anew.
    """

    def __init__(self, work: Callable[[int], None], at_once: int) -> None:
        self._work = work
        self._free = at_once
        self._waiting: dict[int, None] = {}
        """In their order, each once, however often it is woken."""
        self._lock = threading.Lock()

    def work(self, task_id: int) -> None:
        """Work on a task, and then on those that wait; or return at once where it is not its turn."""
        with self._lock:
            if self._free == 0:
                self._waiting.setdefault(task_id)
                return
            self._free -= 1
        following: int | None = task_id
        try:
            while following is not None:
                self._work(following)
                following = self._next()
        except BaseException:
            with self._lock:
                self._free += 1
            raise

    def _next(self) -> int | None:
        """Return the task whose turn it is, or give the turn back."""
        with self._lock:
            following = next(iter(self._waiting), None)
            if following is None:
                self._free += 1
            else:
                del self._waiting[following]
        return following


def _log_failure(future: "Future[None]") -> None:
    if not future.cancelled() and (error := future.exception()) is not None:
        _log.error("job.failed", exc_info=error)

"""The Celery application: thin tasks that take plain ids, on Redis.

Celery carries wake-ups only. A message that is lost, doubled or late harms nothing: leases keep two workers apart and
the reconciler wakes what was forgotten. So nothing is kept in a result backend.
"""

import threading
from typing import TYPE_CHECKING, NamedTuple

import structlog
from celery import Celery
from celery.exceptions import OperationalError
from celery.signals import worker_shutting_down
from redis.exceptions import RedisError

from workers.queues import Turns

if TYPE_CHECKING:  # the scheduler and the web part only send names: they need not load the pipeline
    from workers.jobs import WorkerJobs

_log = structlog.get_logger(__name__)
WAKE_QUEUE = "acrouter"


class _Use(NamedTuple):
    jobs: "WorkerJobs"
    turns: Turns


_current: list[_Use] = []


def make_celery(redis_url: str, reconcile_every_s: float) -> Celery:
    """Return the application for a broker."""
    app = Celery("acrouter", broker=redis_url)
    app.conf.update(
        task_default_queue=WAKE_QUEUE,
        task_ignore_result=True,
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=False,
        broker_connection_retry_on_startup=True,
        broker_transport_options={"socket_timeout": 10, "socket_connect_timeout": 10},
        beat_schedule={
            "reconcile": {
                "task": "acrouter.reconcile",
                "schedule": reconcile_every_s,
                # Old ones say nothing that the newest does not.
                "options": {"expires": reconcile_every_s},
            }
        },
        worker_redirect_stdouts=False,
    )
    _register(app)
    return app


def use(jobs: "WorkerJobs", *, tasks_at_once: int) -> None:
    """Say what this process's tasks work with. Called once, before the worker starts.

    The worker needs a thread more than `tasks_at_once`: tasks that wait for others never keep it from the rest.
    """
    _current[:] = [_Use(jobs, Turns(jobs.work, tasks_at_once))]


class CeleryQueue:
    """Wakes the workers through the broker. Where that is away the wake-up is lost: nothing that stood before it is."""

    def __init__(self, app: Celery) -> None:
        self._app = app

    def deliver(self, delivery_id: int) -> None:
        self._send("acrouter.deliver", delivery_id)

    def work(self, task_id: int) -> None:
        self._send("acrouter.work", task_id)

    def _send(self, name: str, number: int) -> None:
        try:
            self._app.send_task(name, (number,), retry=False, ignore_result=True)
        except (OperationalError, RedisError, OSError) as error:
            _log.warning("queue.unreachable", job=name, number=number, error=str(error))


def _register(app: Celery) -> None:
    for job in (_deliver, _work, _reconcile):
        app.task(name=f"acrouter.{job.__name__.lstrip('_')}")(job)


def _deliver(delivery_id: int) -> None:
    _used().jobs.deliver(delivery_id)


def _work(task_id: int) -> None:
    _used().turns.work(task_id)


def _reconcile() -> None:
    _used().jobs.reconcile()


def _used() -> _Use:
    if not _current:
        raise RuntimeError("start workers with `acrouter worker`, which tells them what to work with")
    return _current[0]


@worker_shutting_down.connect  # type: ignore[untyped-decorator]
def _hand_back(**_kwargs: object) -> None:
    """On a warm shutdown what runs is handed back: by its thread, or after a moment in spite of it."""
    from workers.shutdown import GRACE_S, hand_back

    for used in _current:
        runtime = used.jobs.worker.runtime
        runtime.stopping.set()
        timer = threading.Timer(GRACE_S, hand_back, (runtime,))
        timer.daemon = True
        timer.start()

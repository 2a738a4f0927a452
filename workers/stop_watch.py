"""A person's stop ends a set-up or a verification in seconds, which otherwise may last for minutes.

A model's work needs none of it: it ends before the next model call (`workers.run.AttemptMeter`), with its patch kept.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from sqlalchemy.exc import SQLAlchemyError

from sandbox.errors import SandboxError
from workers.run import Run

EVERY_S = 2.0
_log = structlog.get_logger(__name__)


@contextmanager
def ended_by_a_stop(run: Run, *, every_s: float = EVERY_S) -> Iterator[None]:
    """Remove the task's sandboxes as soon as a person asks for its end, for as long as the block lasts.

    Raises:
        StoppedByPerson, LeaseLost: a person asked for the end, whatever became of the block.
        HandBack: its sandbox is gone because this process must end.
    """
    over = threading.Event()
    watch = threading.Thread(target=_watch, args=(run, over, every_s), name=f"stop-{run.task_id}", daemon=True)
    watch.start()
    try:
        yield
    except SandboxError:
        run.check()  # the sandbox may be gone because of that
        raise
    finally:
        over.set()
        watch.join()
    # A process that must end may still hand in what has come to its end.
    if run.task().stop_requested_by:
        run.check()


def _watch(run: Run, over: threading.Event, every_s: float) -> None:
    # Again and again: what was about to start when the others were removed starts after that.
    while not over.wait(every_s):
        try:
            if run.task().stop_requested_by:
                run.runtime.backend.remove_task(str(run.task_id))
        except (SQLAlchemyError, SandboxError) as error:
            _log.warning("stop.not_looked_for", task_id=run.task_id, error=str(error))

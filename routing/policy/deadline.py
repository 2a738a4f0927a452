"""Waits for a call no longer than a deadline, whatever the call does."""

import queue
import threading
from collections.abc import Callable
from typing import Self, TypeVar

Result = TypeVar("Result")

MOST_AT_ONCE = 8
"""Calls that may be under way, those given up on included: a server that hangs must not gather threads."""
_slots = threading.BoundedSemaphore(MOST_AT_ONCE)


class DeadlineError(Exception):
    """The call was not done in time, or too many are still under way."""

    @classmethod
    def late(cls, seconds: float) -> Self:
        return cls(f"no answer within {seconds:g} s")


def within(seconds: float, call: Callable[[], Result]) -> Result:
    """Return what `call` returns, or raise what it raises.

    HTTP clients bound each read and not their sum: a server that sends a byte now and then holds them for ever. The
    call runs in a daemon thread, which is left to itself when its time is over; it must end by its own timeouts.

    Raises:
        DeadlineError: it took longer than `seconds`.
    """
    if not _slots.acquire(blocking=False):
        raise DeadlineError(f"{MOST_AT_ONCE} calls are under way already")
    done: queue.SimpleQueue[tuple[Result | None, Exception | None]] = queue.SimpleQueue()

    def work() -> None:
        try:
            done.put((call(), None))
        except Exception as error:  # noqa: BLE001  (it is raised again where the caller waits)
            done.put((None, error))
        finally:
            _slots.release()

    threading.Thread(target=work, name="policy-call", daemon=True).start()
    try:
        result, error = done.get(timeout=seconds)
    except queue.Empty:
        raise DeadlineError.late(seconds) from None
    if error is not None:
        raise error
    return result  # type: ignore[return-value]

"""A circuit breaker: after failures in a row nothing is asked for a while, then one call tries again."""

import threading
import time
from collections.abc import Callable

FAILURES = 3
PAUSE_S = 30.0


class CircuitBreaker:
    """Closed: calls go through. Open: none does. After the pause one does, and its result decides."""

    def __init__(
        self, failures: int = FAILURES, pause_s: float = PAUSE_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limit = failures
        self._pause_s = pause_s
        self._clock = clock
        self._failures = 0
        self._open_until = 0.0
        self._lock = threading.Lock()

    def allows(self) -> bool:
        """Return whether a call may be made now; while half-open, True for one caller only."""
        with self._lock:
            if self._failures < self._limit:
                return True
            now = self._clock()
            if now < self._open_until:
                return False
            self._open_until = now + self._pause_s  # the others wait for this one's result
            return True

    def succeeded(self) -> None:
        with self._lock:
            self._failures = 0

    def failed(self) -> None:
        with self._lock:
            self._failures += 1
            if self._failures >= self._limit:
                self._open_until = self._clock() + self._pause_s

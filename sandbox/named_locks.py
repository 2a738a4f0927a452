"""One lock for each name, for the threads of a process: who makes one thing keeps nobody from another."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class NamedLocks:
    """Holds a lock only as long as somebody has it or waits for it: names that strangers choose do not add up."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._locks: dict[str, tuple[threading.Lock, int]] = {}

    def __len__(self) -> int:
        return len(self._locks)

    @contextmanager
    def held(self, name: str) -> Iterator[None]:
        """Wait for a name's lock and hold it."""
        with self._wanted(name) as lock, lock:
            yield

    @contextmanager
    def if_free(self, name: str) -> Iterator[bool]:
        """Hold a name's lock where nobody else does, and say whether that is so."""
        with self._wanted(name) as lock:
            free = lock.acquire(blocking=False)
            try:
                yield free
            finally:
                if free:
                    lock.release()

    @contextmanager
    def _wanted(self, name: str) -> Iterator[threading.Lock]:
        with self._guard:
            lock, count = self._locks.get(name, (threading.Lock(), 0))
            self._locks[name] = (lock, count + 1)
        try:
            yield lock
        finally:
            with self._guard:
                lock, count = self._locks.pop(name)
                if count > 1:
                    self._locks[name] = (lock, count - 1)

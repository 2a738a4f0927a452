"""Wakes workers for what was stored."""

import queue
import threading
from collections.abc import Callable, Sequence

import structlog

_log = structlog.get_logger(__name__)


class Waker:
    """Wakes workers from a thread of its own: a broker that is slow or away holds up no webhook.

    What it loses, the reconciler finds.
    """

    def __init__(self, wake: Callable[[int], None]) -> None:
        self._wake = wake
        self._waiting: queue.SimpleQueue[Sequence[int] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="waker", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._waiting.put(None)
        self._thread.join(5)

    def wake(self, delivery_ids: Sequence[int]) -> None:
        self._waiting.put(delivery_ids)

    def _work(self) -> None:
        while (delivery_ids := self._waiting.get()) is not None:
            for delivery_id in delivery_ids:
                try:
                    self._wake(delivery_id)
                except Exception:  # noqa: BLE001  (each broker has its own)
                    _log.exception("webhook.queue_unreachable", delivery_id=delivery_id)

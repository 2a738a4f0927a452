"""Sends signed webhooks in order, keeps what was sent, and sends it again when asked.

https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
"""

import hashlib
import hmac
import json
import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from queue import Queue
from typing import Any

import httpx

Json = dict[str, Any]


@dataclass
class Delivery:
    """One webhook; a manual redelivery is a delivery of its own with the same guid."""

    id: int
    guid: str
    event: str
    action: str | None
    body: bytes
    installation_id: int | None
    repository_id: int | None
    redelivery: bool = False
    delivered_at: datetime | None = None
    duration_s: float = 0.0
    status_code: int = 0
    """What the receiver answered; 0 where it could not be reached."""

    @property
    def payload(self) -> Json:
        found: Json = json.loads(self.body)
        return found

    def as_json(self) -> Json:
        """Return the shape of GitHub's `hook-delivery-item`."""
        return {
            "id": self.id,
            "guid": self.guid,
            "delivered_at": (self.delivered_at or datetime.now(UTC)).isoformat().replace("+00:00", "Z"),
            "redelivery": self.redelivery,
            "duration": round(self.duration_s, 2),
            "status": "OK" if 200 <= self.status_code < 300 else "Invalid HTTP Response",
            "status_code": self.status_code,
            "event": self.event,
            "action": self.action,
            "installation_id": self.installation_id,
            "repository_id": self.repository_id,
            "throttled_at": None,
        }


class WebhookSender:
    """Posts to `url` from a thread of its own, one webhook after the other; `url` may change at any time.

    Without a URL, and where the receiver fails, the delivery is kept as failed and not sent again by itself, as
    GitHub does.
    """

    def __init__(self, url: str | None, secret: str) -> None:
        self.url = url
        self.deliveries: list[Delivery] = []
        self._secret = secret.encode()
        self._queue: Queue[Delivery | None] = Queue()
        self._lock = threading.Lock()
        self._lose = 0
        self._thread = threading.Thread(target=self._work, name="hub-webhooks", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._queue.put(None)
        self._thread.join(15)

    def send(self, event: str, payload: Mapping[str, Any]) -> Delivery:
        """Queue a webhook and return its delivery."""
        action = payload.get("action")
        installation = payload.get("installation") or {}
        repository = payload.get("repository") or {}
        return self._enqueue(
            guid=str(uuid.uuid4()),
            event=event,
            action=action if isinstance(action, str) else None,
            body=json.dumps(payload).encode(),
            installation_id=installation.get("id"),
            repository_id=repository.get("id"),
        )

    def redeliver(self, original: Delivery) -> Delivery:
        """Send a webhook again under its own guid."""
        return self._enqueue(
            guid=original.guid,
            event=original.event,
            action=original.action,
            body=original.body,
            installation_id=original.installation_id,
            repository_id=original.repository_id,
            redelivery=True,
        )

    def lose_next(self, count: int = 1) -> None:
        """Let the next webhooks never arrive."""
        with self._lock:
            self._lose += count

    def settle(self, timeout_s: float = 30.0) -> None:
        """Wait until everything that was queued has been sent."""
        deadline = time.monotonic() + timeout_s
        while self._queue.unfinished_tasks:
            if time.monotonic() > deadline:
                raise TimeoutError(f"webhooks were still under way after {timeout_s} s")
            time.sleep(0.01)

    def _enqueue(self, **values: Any) -> Delivery:
        with self._lock:
            delivery = Delivery(id=len(self.deliveries) + 1, **values)
            self.deliveries.append(delivery)
        self._queue.put(delivery)
        return delivery

    def _work(self) -> None:
        with httpx.Client(timeout=10, trust_env=False) as client:
            while (delivery := self._queue.get()) is not None:
                try:
                    self._post(client, delivery)
                finally:
                    self._queue.task_done()
        self._queue.task_done()

    def _post(self, client: httpx.Client, delivery: Delivery) -> None:
        delivery.delivered_at = datetime.now(UTC)
        with self._lock:
            lost = self._lose > 0
            self._lose -= lost
        if lost or not self.url:
            return
        signature = hmac.new(self._secret, delivery.body, hashlib.sha256).hexdigest()
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "GitHub-Hookshot/acrouter-local",
            "X-GitHub-Event": delivery.event,
            "X-GitHub-Delivery": delivery.guid,
            "X-GitHub-Hook-ID": "1",
            "X-Hub-Signature-256": f"sha256={signature}",
        }
        began = time.monotonic()
        try:
            delivery.status_code = client.post(self.url, content=delivery.body, headers=headers).status_code
        except (httpx.HTTPError, httpx.InvalidURL):
            delivery.status_code = 0
        delivery.duration_s = time.monotonic() - began

"""The GitHub that integration tests run against, and the verbs that they tell their stories in."""

import re
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from bot.demo.hub.webhooks import Delivery, WebhookSender
from tests.support.github.emulate import Emulate
from tests.support.github.faults import Action, Fault
from tests.support.github.proxy import Proxy
from tests.support.github.verbs import OWNER, Verbs
from tests.support.github.wire import Recorded, make_server
from tests.support.services import free_port

Json = Any

APP_ID = 77
APP_SLUG = "acrouter"
INSTALLATION_ID = 4242
PEOPLE = ("maintainer", "reader", "stranger", "contributor")
WEBHOOK_SECRET = "the App's webhook secret"
PERMISSIONS = {
    "metadata": "read",
    "contents": "write",
    "issues": "write",
    "pull_requests": "write",
    "checks": "write",
    "actions": "write",
    "members": "read",
}


def new_private_key() -> str:
    """Return a private key for an App, as GitHub gives it out (PEM, PKCS#1)."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    ).decode()


usual_private_key = cache(new_private_key)
"""Making one takes as long as a test."""


class GitHubServer(Verbs):
    """A stateful GitHub for one test; `with GitHubServer(folder) as gh:` starts it, checks and stops it.

    It is the stateful GitHub that nobody here wrote, behind a server of ours that adds what that lacks. It is a
    `bot.demo.hub.story.Story`.

    Args:
        folder: where the bare repositories go.
        webhook_url: where webhooks go; may be set later as `gh.webhook_url`.
    """

    def __init__(self, folder: Path, webhook_url: str | None = None, *, people: Sequence[str] = PEOPLE) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.private_key_pem = usual_private_key()
        self.app_id = APP_ID
        self.app_slug = APP_SLUG
        self.installation_id = INSTALLATION_ID
        self.webhook_secret = WEBHOOK_SECRET
        self.port = free_port()
        self.base_url = f"http://localhost:{self.port}"
        self._sender = WebhookSender(webhook_url, WEBHOOK_SECRET)
        self._emulate = Emulate(
            public_url=self.base_url,
            hook_url=f"http://127.0.0.1:{self.port}/_from-emulate",
            owner=OWNER,
            users=people,
            app_id=APP_ID,
            app_slug=APP_SLUG,
            private_key_pem=self.private_key_pem,
            installation_id=INSTALLATION_ID,
            permissions=PERMISSIONS,
        )
        super().__init__(Proxy(self._emulate, self._sender, self.base_url), self._emulate, folder)
        self._server = make_server(self.port, self._proxy.answer)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> "GitHubServer":
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.stop()
        if kind is None:
            self.assert_no_violations()

    def start(self) -> None:
        self._thread.start()
        self._sender.start()
        self._emulate.start()

    def stop(self) -> None:
        self._proxy.stopping.set()
        self._proxy.faults.clear()
        self._emulate.stop()
        self._server.shutdown()
        self._server.server_close()
        self._sender.stop()

    # What the test looks at and sets.

    @property
    def webhook_url(self) -> str | None:
        return self._sender.url

    @webhook_url.setter
    def webhook_url(self, url: str | None) -> None:
        self._sender.url = url

    @property
    def requests(self) -> list[Recorded]:
        """Every request that was made from outside, in order of their answers."""
        return list(self._proxy.requests)

    @property
    def deliveries(self) -> list[Delivery]:
        """Every webhook that was sent or lost, in order."""
        return list(self._sender.deliveries)

    @property
    def tokens(self) -> list[str]:
        """Every installation token that was handed out, for tests that look for leaks."""
        return [*self._proxy.tokens]

    def count(self, method: str, path_regex: str) -> int:
        """Return how many requests of a method had a path that matches as a whole."""
        return sum(r.method == method and re.fullmatch(path_regex, r.path) is not None for r in self.requests)

    def on(self, method: str, path_regex: str, action: Action, *, times: int | None = 1) -> Fault:
        """Let the next requests of a method (`*`: any) whose path has a match meet a fault."""
        return self._proxy.faults.add(method, path_regex, action, times=times)

    def clear_faults(self) -> None:
        self._proxy.faults.clear()

    def assert_no_violations(self) -> None:
        """Fail where a request, or an answer of ours, is not as GitHub's description has it."""
        found = [str(violation) for violation in self._proxy.violations]
        assert not found, "GitHub's description does not allow:\n" + "\n".join(found)

    def forgive_violations(self) -> None:
        """Forget what was found so far, in a test that is about just that."""
        self._proxy.violations.clear()

    def expire_tokens(self) -> None:
        """Let every installation token that was handed out be dead."""
        self._proxy.expired |= self._proxy.tokens.keys()

    def lose_webhooks(self, count: int = 1) -> None:
        """Let the next webhooks never arrive; they stay in the list of deliveries."""
        self._sender.lose_next(count)

    def redeliver(self, delivery: Delivery) -> Delivery:
        """Send a webhook again, under the id that it had."""
        return self._sender.redeliver(delivery)

    def settle(self) -> None:
        """Wait until every webhook so far has been sent."""
        self._proxy.settle()

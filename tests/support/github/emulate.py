"""Runs the stateful GitHub that nobody here wrote (npm `emulate`), and speaks to it as one of its users.

Each test has one of its own; all those of a test process live in one process of Node.js, which takes ten times as long
to start as they do.
"""

import atexit
import json
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import IO, Any

import httpx

from tests.support import npm
from tests.support.services import free_port, wait_until

Json = Any
ORGANISATION = "guild"

_SCRIPT = Path(__file__).with_name("emulate_host.mjs")
# Each token may make 5,000 requests; mirroring a repository's objects takes a few hundred.
_MIRROR_TOKENS = [f"mirror-{number}" for number in range(20)]


class EmulateError(Exception):
    """The stateful GitHub refused what a story asked of it."""


class _Host:
    """The process that holds them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  (as long as the process)
        self._process = subprocess.Popen(
            [*npm.node_command(), str(_SCRIPT), str(npm.emulate_api())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        atexit.register(self._end)

    def ask(self, request: Json) -> None:
        """Make a request, as the script describes them, and wait until it is done.

        Raises:
            EmulateError: it could not be.
        """
        asked, told = self._pipes()
        with self._lock:
            asked.write(json.dumps(request) + "\n")
            asked.flush()
            line = told.readline()
        if not line:
            self._log.seek(0)
            raise EmulateError(f"emulate ended:\n{self._log.read()[-2000:].decode(errors='replace')}")
        if error := json.loads(line).get("error"):
            raise EmulateError(f"emulate: {error}")

    def _pipes(self) -> tuple[IO[str], IO[str]]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        return self._process.stdin, self._process.stdout

    def _end(self) -> None:
        self._process.terminate()
        self._process.wait(10)


_host = cache(_Host)


class Emulate:
    """One of it, seeded with an App, its installation on `owner`, and users."""

    def __init__(
        self,
        *,
        public_url: str,
        hook_url: str,
        owner: str,
        users: Sequence[str],
        app_id: int,
        app_slug: str,
        private_key_pem: str,
        installation_id: int,
        permissions: dict[str, str],
    ) -> None:
        self.port = free_port()
        self.url = f"http://localhost:{self.port}"
        self.installation_id = installation_id
        self.tokens = {f"token-of-{login}": login for login in [owner, *users]}
        self._public_url = public_url
        self._hook_url = hook_url
        self._owner = owner
        self._mirror_tokens = cycle(_MIRROR_TOKENS)
        logins = {**self.tokens, **dict.fromkeys(_MIRROR_TOKENS, owner)}
        app = {
            "app_id": app_id,
            "slug": app_slug,
            "name": app_slug,
            "private_key": private_key_pem,
            "permissions": permissions,
            "events": ["*"],
            "webhook_url": hook_url,
            "webhook_secret": "between-emulate-and-the-proxy",
            "installations": [{"installation_id": installation_id, "account": owner, "permissions": permissions}],
        }
        self._seed = {
            "tokens": {token: {"login": login, "scopes": ["repo", "user"]} for token, login in logins.items()},
            "github": {
                "users": [{"login": login} for login in [owner, *users]],
                "orgs": [{"login": ORGANISATION}],
                "apps": [app],
            },
        }
        self.client = httpx.Client(base_url=self.url, timeout=30, trust_env=False)

    def start(self) -> None:
        _host().ask({"start": {"port": self.port, "seed": self._seed, "baseUrl": self._public_url}})
        wait_until(self._answers, what="emulate")

    def settle(self) -> None:
        """Wait until the webhooks of every request that was answered have been sent."""
        _host().ask({"settle": self._hook_url})

    def stop(self) -> None:
        self.client.close()
        _host().ask({"stop": self.port})

    def _answers(self) -> bool:
        try:
            return self.client.get("/meta").status_code == 200
        except httpx.TransportError:
            return False

    def call(self, method: str, path: str, body: Json = None, *, by: str = "") -> Json:
        """Make one request as a user (the owner where none is named) and return the decoded answer.

        Raises:
            EmulateError: it answered with an error.
        """
        return self._call(method, path, body, f"token-of-{by or self._owner}")

    def mirror(self, method: str, path: str, body: Json = None) -> Json:
        """Make one request of the many that copy git objects."""
        owner = path.split("/")[2]
        token = next(self._mirror_tokens) if owner == self._owner else f"token-of-{owner}"
        return self._call(method, path, body, token)

    def _call(self, method: str, path: str, body: Json, token: str) -> Json:
        answer = self.client.request(method, path, json=body, headers={"Authorization": f"Bearer {token}"})
        if answer.is_error:
            raise EmulateError(f"{method} {path}: {answer.status_code} {answer.text[:500]}")
        return answer.json() if answer.content else None

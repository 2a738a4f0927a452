"""Runs the stateful GitHub that nobody here wrote (npm `emulate`), and speaks to it as one of its users."""

import json
import subprocess
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import httpx

from tests.support import npm
from tests.support.services import free_port, wait_until

Json = Any
ORGANISATION = "guild"

# Each token may make 5,000 requests; mirroring a repository's objects takes a few hundred.
_MIRROR_TOKENS = [f"mirror-{number}" for number in range(20)]


class EmulateError(Exception):
    """The stateful GitHub refused what a story asked of it."""


class Emulate:
    """One process of it, seeded with an App, its installation on `owner`, and users."""

    def __init__(
        self,
        folder: Path,
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
        self._owner = owner
        self._seed = folder / "emulate.json"
        self._log = folder / "emulate.log"
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
        seed = {
            "tokens": {token: {"login": login, "scopes": ["repo", "user"]} for token, login in logins.items()},
            "github": {
                "users": [{"login": login} for login in [owner, *users]],
                "orgs": [{"login": ORGANISATION}],
                "apps": [app],
            },
        }
        # JSON is YAML too, and needs no quoting of keys.
        self._seed.write_text(json.dumps(seed), encoding="utf-8")
        self._process: subprocess.Popen[bytes] | None = None
        self.client = httpx.Client(base_url=self.url, timeout=30, trust_env=False)

    def start(self) -> None:
        options = ["--service", "github", "--port", str(self.port), "--seed", str(self._seed)]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*npm.node_command(), str(npm.emulate_entry()), "start", *options, "--base-url", self._public_url],
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._seed.parent,
            )

        def answers() -> bool:
            if self._process is None or self._process.poll() is not None:
                raise EmulateError(f"emulate ended at its start:\n{self.log()[-2000:]}")
            try:
                return self.client.get("/meta").status_code == 200
            except httpx.TransportError:
                return False

        wait_until(answers, what="emulate")

    def stop(self) -> None:
        self.client.close()
        if self._process:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()

    def log(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

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

"""PyGithub clients for one repository each, with tokens of their own.

A token covers one repository and no more permissions than its use needs. Clients never repeat a write and never wait
for a rate limit: the queue waits (see `bot.github.failures`).
"""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from github import Auth, Github, UnknownObjectException
from github.Repository import Repository
from urllib3 import BaseHTTPResponse
from urllib3.util import Retry

from bot.errors import CredentialsRefused, Moved
from bot.github.app_key import app_auth
from bot.github.failures import translated
from sandbox.remotes import Author
from store.scrub import register_secret
from store.settings import Settings
from store.types import utc_now
from workers.errors import ForgeError, TargetGone
from workers.ports import RepositoryRef

Permissions = Mapping[str, str]

API: Permissions = MappingProxyType(
    {
        "metadata": "read",
        "contents": "read",
        "issues": "write",
        "pull_requests": "write",
        "checks": "write",
        "actions": "read",
    }
)
"""For the API: nothing of it can change a branch."""
MEMBERS: Permissions = MappingProxyType({"metadata": "read", "members": "read"})
"""For the question who is in a team; the App need not have it where no configuration names teams."""
PROPOSE: Permissions = MappingProxyType({"metadata": "read", "contents": "write", "pull_requests": "write"})
"""For a PR that proposes a configuration."""
RERUN: Permissions = MappingProxyType({"metadata": "read", "actions": "write"})
"""For running a flake once more; an App that may only read Actions does without."""
FETCH: Permissions = MappingProxyType({"metadata": "read", "contents": "read"})
PUSH: Permissions = MappingProxyType({"metadata": "read", "contents": "write"})

_TIMEOUT_S = 20
_MARGIN = timedelta(minutes=5)
"""A token is not used in the last minutes of its hour."""
_MOVED = (301, 307, 308)
_MOST_OPEN = 8
"""Clients of one thread: each keeps a connection open, and an organisation may have thousands of repositories."""


class _Retries(Retry):
    """Follows no redirection: PyGithub would follow a read's without its query, and take a write's for the answer."""

    def is_retry(self, method: str, status_code: int, has_retry_after: bool = False) -> bool:
        return status_code in _MOVED or super().is_retry(method, status_code, has_retry_after)

    def increment(
        self,
        method: str | None = None,
        url: str | None = None,
        response: BaseHTTPResponse | None = None,
        *more: Any,
        **options: Any,
    ) -> "_Retries":
        if response is not None and response.status in _MOVED:
            response.drain_conn()
            raise Moved(response.headers.get("location", ""))
        return super().increment(method, url, response, *more, **options)


# Reads that failed on the way or at GitHub are asked again at once; writes never are, and neither is a rate limit.
_READ_RETRIES = _Retries(
    total=2,
    allowed_methods=frozenset({"GET", "HEAD"}),
    status_forcelist=(500, 502, 503, 504),
    backoff_factor=0.2,
    respect_retry_after_header=False,
    raise_on_status=False,
)


@dataclass(frozen=True)
class Token:
    """An installation's token for one repository."""

    value: str
    expires_at: datetime
    full_name: str
    """What GitHub calls the repository at this moment: its webhooks may tell of a new name late, or never."""

    def __repr__(self) -> str:
        return f"Token(expires_at={self.expires_at})"


class Clients:
    """Makes and keeps the clients of one process. May be used by several threads."""

    def __init__(self, settings: Settings) -> None:
        """Read the App's credentials.

        Raises:
            ConfigurationError: they are missing or cannot be read.
        """
        self._app_auth = app_auth(settings)
        register_secret(settings.secret("github_private_key"))
        self.settings = settings
        # By all that is known of a repository: a new name or installation needs another token.
        self._tokens: dict[RepositoryRef, Token] = {}
        self._lock = threading.Lock()
        # A PyGithub client keeps the request under way in itself: each thread has its own.
        self._own = threading.local()
        self._login = ""
        self._author: Author | None = None

    def repository(self, ref: RepositoryRef) -> Repository:
        """Return a repository whose methods act with a token for it. It has read nothing yet.

        Raises:
            ForgeError: no token could be minted.
        """
        token = self._kept_token(ref)
        clients: dict[int, tuple[str, Github]] = self._own.__dict__.setdefault("clients", {})
        kept = clients.pop(ref.id, None)
        if kept is not None and kept[0] != token.value:
            kept[1].close()
            kept = None
        clients[ref.id] = kept = kept or (token.value, self._client(Auth.Token(token.value)))
        if len(clients) > _MOST_OPEN:
            clients.pop(next(iter(clients)))[1].close()  # the one that was used longest ago
        return _repository(kept[1], ref, token)

    @contextmanager
    def opened(self, ref: RepositoryRef, permissions: Permissions) -> Iterator[Repository]:
        """Yield a repository with a token of its own for a rare use, made now and with no more than `permissions`."""
        token = self.mint(ref, permissions)
        client = self._client(Auth.Token(token.value))
        try:
            yield _repository(client, ref, token)
        finally:
            client.close()

    def mint(self, ref: RepositoryRef, permissions: Permissions) -> Token:
        """Return a token made now, for this one repository.

        https://docs.github.com/en/rest/apps/apps#create-an-installation-access-token-for-an-app
        """
        try:
            data = self.as_app(
                "POST",
                f"/app/installations/{ref.installation_id}/access_tokens",
                f"mint a token for {ref.full_name}",
                {"repository_ids": [ref.id], "permissions": dict(permissions)},
            )
        except TargetGone as error:
            # Not the thing that is asked about, but our way to it: that is worth another try.
            raise ForgeError(f"{error} The App may have been uninstalled there.") from None
        expires = datetime.fromisoformat(data["expires_at"])
        names = {item["id"]: item["full_name"] for item in data.get("repositories") or ()}
        token = Token(
            data["token"],
            expires if expires.tzinfo else expires.replace(tzinfo=UTC),
            names.get(ref.id, ref.full_name),
        )
        register_secret(token.value, temporary=True)
        return token

    def forget_token(self, ref: RepositoryRef) -> None:
        """Have the next client mint a token: GitHub refused this one, or what it says of the repository is old."""
        with self._lock:
            self._tokens.pop(ref, None)

    def login(self) -> str:
        """Return the App's own login, `SLUG[bot]`."""
        if not self._login:
            self._login = f"{self.as_app('GET', '/app', 'read the App')['slug']}[bot]"
        return self._login

    def author(self, opened: Repository) -> Author:
        """Return the App's bot user, as whom its commits are made: GitHub links them by the id in the address.

        It is asked for with the token of a repository in use: that of another one may be long dead.
        """
        if self._author is None:
            login = self.login()
            try:
                _, user = opened.requester.requestJsonAndCheck("GET", f"/users/{quote(login)}")
                address = f"{user['id']}+{login}"
            except UnknownObjectException:
                address = login
            self._author = Author(login, f"{address}@users.noreply.github.com")
        return self._author

    def _kept_token(self, ref: RepositoryRef) -> Token:
        with self._lock:
            token = self._tokens.get(ref)
        if token is None or token.expires_at - utc_now() < _MARGIN:
            token = self.mint(ref, API)
            with self._lock:
                self._tokens[ref] = token
        return token

    def as_app(self, verb: str, path: str, action: str, body: object = None) -> dict[str, Any]:
        """Ask something as the App itself and return the decoded answer. `action` says what was tried.

        Raises:
            ForgeTemporary, ForgeError: it was refused.
        """
        return dict(self._ask_as_app(verb, path, action, body)[1])

    def page_as_app(self, path: str, action: str) -> tuple[Mapping[str, str], list[dict[str, Any]]]:
        """Return the headers, names in lower case, and the items of one page of a list that the App may read."""
        headers, data = self._ask_as_app("GET", path, action, None)
        return {name.lower(): str(value) for name, value in headers.items()}, list(data)

    def _ask_as_app(self, verb: str, path: str, action: str, body: object) -> tuple[dict[str, Any], Any]:
        client = self._client(self._app_auth)
        try:
            with translated(action):
                return client.requester.requestJsonAndCheck(verb, path, input=body)
        except CredentialsRefused as error:
            # The queue's patience does not help against a wrong key or clock.
            raise ForgeError(f"{error} Check the App's id, its private key and this machine's clock.") from None
        finally:
            client.close()

    def _client(self, auth: Auth.Auth) -> Github:
        settings = self.settings
        return Github(
            auth=auth,
            base_url=settings.github_api_url.rstrip("/"),
            timeout=_TIMEOUT_S,
            retry=_READ_RETRIES,
            per_page=100,
            user_agent="acrouter",
            seconds_between_requests=settings.github_read_pause_s,
            seconds_between_writes=settings.github_write_pause_s,
            lazy=True,
        )


def _repository(client: Github, ref: RepositoryRef, token: Token) -> Repository:
    """Return a repository of which the id and the present name are known; nothing is asked for them."""
    known = {"id": ref.id, "full_name": token.full_name, "url": f"{client.requester.base_url}/repos/{token.full_name}"}
    return Repository(client.requester, {}, known, completed=True)

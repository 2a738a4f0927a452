"""Asks GitHub who somebody is and what they may see: the web flow of the App, with PKCE.

https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-user-access-token-for-a-github-app
"""

import base64
import hashlib
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlencode

import httpx

from bot.dashboard.errors import GitHubSilentError, SignInError
from bot.dashboard.roles import Circle, Role, merged_circle, parse_circle
from bot.dashboard.sessions import Rights
from store.errors import ConfigurationError
from store.scrub import register_secret
from store.settings import Settings

_TIMEOUT_S = 10.0
_PAGE = 100
_MOST_PAGES = 50


class GitHubPeople:
    """GitHub's answers about one person at a time. Threads may share it."""

    def __init__(self, settings: Settings) -> None:
        """Read who may look.

        Raises:
            ConfigurationError: a setting of the sign-in is missing or wrong.
        """
        secret = settings.secret("github_client_secret")
        if not secret:
            raise ConfigurationError(
                "ACROUTER_GITHUB_CLIENT_ID is set, so ACROUTER_GITHUB_CLIENT_SECRET or _FILE must be, too."
            )
        self._id, self._secret = settings.github_client_id, secret
        self._web = settings.github_web_url.rstrip("/")
        self._api = settings.github_api_url.rstrip("/")
        self._admins = parse_circle(settings.dashboard_admins, "ACROUTER_DASHBOARD_ADMINS")
        self._operators = parse_circle(settings.dashboard_operators, "ACROUTER_DASHBOARD_OPERATORS")
        allowed = parse_circle(settings.dashboard_allowed, "ACROUTER_DASHBOARD_ALLOWED")
        self._allowed = merged_circle((allowed, self._operators, self._admins))
        if not self._allowed:
            raise ConfigurationError(
                "ACROUTER_GITHUB_CLIENT_ID is set and nobody may sign in: name organisations, teams or people in "
                "ACROUTER_DASHBOARD_ALLOWED."
            )

    def authorize_url(self, redirect_uri: str, state: str, verifier: str) -> str:
        """Return where a browser goes to sign in (RFC 7636: the challenge is the verifier's SHA-256)."""
        hashed = hashlib.sha256(verifier.encode()).digest()
        query = {
            "client_id": self._id,
            "redirect_uri": redirect_uri,
            "state": state,
            "code_challenge": base64.urlsafe_b64encode(hashed).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        return f"{self._web}/login/oauth/authorize?{urlencode(query)}"

    def exchange(self, code: str, redirect_uri: str, verifier: str) -> str:
        """Return the person's token for a code.

        Raises:
            SignInError: GitHub did not take the code, or cannot be reached.
        """
        form = {
            "client_id": self._id,
            "client_secret": self._secret,
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
        }
        try:
            answer = httpx.post(
                f"{self._web}/login/oauth/access_token",
                data=form,
                headers={"Accept": "application/json"},
                timeout=_TIMEOUT_S,
            )
            token = answer.json().get("access_token")
        except (httpx.HTTPError, ValueError, AttributeError) as error:
            raise GitHubSilentError("GitHub could not be asked. Try again in a moment.") from error
        if not isinstance(token, str) or not token:
            raise SignInError("GitHub did not accept the sign-in. Start it again.")
        register_secret(token, temporary=True)
        return token

    def rights(self, token: str) -> Rights:
        """Return who holds a token and what they may see.

        Raises:
            SignInError: they are not among those who may look, or GitHub did not answer.
        """
        with httpx.Client(
            base_url=self._api,
            headers={
                "Authorization": f"Bearer {token}",
                "Accept": "application/vnd.github+json",
                "X-GitHub-Api-Version": "2022-11-28",
                "User-Agent": "acrouter",
            },
            timeout=_TIMEOUT_S,
        ) as client:
            login = str(_get(client, "/user")["login"])
            role = self._role(client, login)
            if role is None:
                raise SignInError(
                    f"{login} is not among those who may look here. An operator can change ACROUTER_DASHBOARD_ALLOWED."
                )
            return Rights(login, role, tuple(sorted(_repositories(client))))

    def _role(self, client: httpx.Client, login: str) -> Role | None:
        if _within(client, login, self._admins):
            return Role.ADMIN
        if _within(client, login, self._operators):
            return Role.OPERATOR
        return Role.VIEWER if _within(client, login, self._allowed) else None


def _within(client: httpx.Client, login: str, circle: Circle) -> bool:
    """Membership counts only once it is active: an invitation that nobody accepted is none."""
    if login.lower() in circle.people:
        return True
    paths = [f"/user/memberships/orgs/{quote(name, safe='')}" for name in sorted(circle.organisations)]
    paths += [
        f"/orgs/{quote(name, safe='')}/teams/{quote(team, safe='')}/memberships/{quote(login, safe='')}"
        for name, team in sorted(circle.teams)
    ]
    for path in paths:
        found = _get(client, path, may_be_missing=True)
        if found is not None and found.get("state") == "active":
            return True
    return False


def _repositories(client: httpx.Client) -> Iterator[int]:
    """The repositories that the App is installed on and this person can read."""
    for installation in _pages(client, "/user/installations", "installations"):
        path = f"/user/installations/{int(installation['id'])}/repositories"
        for repository in _pages(client, path, "repositories"):
            yield int(repository["id"])


def _pages(client: httpx.Client, path: str, key: str) -> Iterator[dict[str, Any]]:
    for page in range(1, _MOST_PAGES + 1):
        found = _get(client, path, per_page=_PAGE, page=page)
        yield from found[key]
        if len(found[key]) < _PAGE:
            return


def _get(client: httpx.Client, path: str, *, may_be_missing: bool = False, **query: int) -> Any:
    try:
        answer = client.get(path, params=query)
        if may_be_missing and answer.status_code in (HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN):
            return None
        if answer.status_code == HTTPStatus.UNAUTHORIZED:
            raise SignInError("GitHub does not know this sign-in any more. Sign in again.")
        answer.raise_for_status()
        return answer.json()
    except (httpx.HTTPError, ValueError) as error:
        raise GitHubSilentError("GitHub did not say what you may see. Try again in a moment.") from error

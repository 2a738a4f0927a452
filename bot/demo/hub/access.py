"""Who asks: the App by its own token (JWT), or an installation by the token that the App was given.

https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app
"""

from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from fastapi import Request

from bot.demo.hub.hub import Hub, HubRefusal, invalid_because, not_found
from bot.demo.hub.state import Repository, Token

_LONGEST_S = 600


class Access:
    """Checks a request's Authorization header against the App's key and the tokens that were minted."""

    def __init__(self, hub: Hub, private_key_pem: str) -> None:
        key = serialization.load_pem_private_key(private_key_pem.encode(), None)
        if not isinstance(key, RSAPrivateKey):
            raise TypeError("the App's private key is no RSA key")
        self._hub = hub
        self._public_key = key.public_key()

    def app(self, request: Request) -> None:
        """Let the App itself pass.

        Raises:
            HubRefusal: 401.
        """
        try:
            claims = jwt.decode(
                bearer(request),
                self._public_key,
                algorithms=["RS256"],
                options={"require": ["exp", "iat", "iss"], "verify_iss": False},
                leeway=60,
            )
        except jwt.InvalidTokenError as error:
            raise HubRefusal(401, f"A JSON web token could not be decoded: {error}") from error
        if str(claims["iss"]) != str(self._hub.state.app_id):
            raise HubRefusal(401, "Integration not found")
        if claims["exp"] - claims["iat"] > _LONGEST_S + 60:
            raise HubRefusal(401, "'Expiration time' claim ('exp') is too far in the future")

    def token(self, request: Request) -> Token:
        """Return the installation token of a request.

        Raises:
            HubRefusal: 401.
        """
        token = self._hub.state.tokens.get(bearer(request))
        if token is None or not token.allows("metadata", write=False):
            raise HubRefusal(401, "Bad credentials")
        return token

    def repository(self, request: Request, *permissions: str, write: bool = False) -> Repository:
        """Return the repository of a request's path, where the token has one of the permissions in it.

        Raises:
            HubRefusal: 401, 403 or 404.
        """
        token = self.token(request)
        found = self._hub.state.repository(f"{request.path_params['owner']}/{request.path_params['repo']}")
        if found is None or not token.allows("metadata", write=False, repository_id=found.id):
            raise not_found()
        if not any(token.allows(name, write=write, repository_id=found.id) for name in permissions):
            raise HubRefusal(403, "Resource not accessible by integration")
        return found

    def mint(self, body: dict[str, Any]) -> Token:
        """Make an installation token of at most the installation's permissions.

        Raises:
            HubRefusal: 422 where more is asked for than the installation has.
        """
        state = self._hub.state
        asked = body.get("permissions") or dict(state.permissions)
        rank = {"read": 1, "write": 2}
        for name, level in asked.items():
            if rank.get(level, 3) > rank.get(state.permissions.get(name, ""), 0):
                raise invalid_because("InstallationToken", "The permissions requested are not granted.")
        ids: set[int] | None = None
        if "repositories" in body or "repository_ids" in body:
            ids = set(body.get("repository_ids") or ())
            names = {name.lower() for name in body.get("repositories") or ()}
            ids |= {found.id for found in state.repositories.values() if found.name.lower() in names}
            known = {found.id for found in state.repositories.values()}
            if not ids or not ids <= known or len(ids) < len(names):
                raise invalid_because("InstallationToken", "A repository is not accessible to the installation.")
        permissions = {"metadata": "read", **asked}
        return state.mint(permissions, frozenset(ids) if ids is not None else None)


def bearer(request: Request) -> str:
    return request.headers.get("authorization", "").partition(" ")[2].strip()

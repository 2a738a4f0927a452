"""The App's private key, and what is signed with it.

https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/authenticating-as-a-github-app
"""

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from github import Auth

from store.errors import ConfigurationError
from store.settings import Settings

_ALGORITHM = "RS256"


def app_auth(settings: Settings) -> Auth.AppAuth:
    """Return what authenticates as the App that the settings name.

    Raises:
        ConfigurationError: the App's id or its key is missing, or the key is none.
    """
    pem = settings.secret("github_private_key")
    if settings.github_app_id is None or not pem:
        raise ConfigurationError(
            "GitHub App: set ACROUTER_GITHUB_APP_ID and ACROUTER_GITHUB_PRIVATE_KEY_FILE (or "
            "ACROUTER_GITHUB_PRIVATE_KEY)."
        )
    return signed_as(settings.github_app_id, pem)


def signed_as(app_id: int, pem: str) -> Auth.AppAuth:
    """Return what authenticates as an App with this private key.

    The key is loaded once, here: that takes far longer than the signature which every new token needs.

    Raises:
        ConfigurationError: the key is none.
    """
    key = _load(pem)
    return Auth.AppAuth(app_id, sign_func=lambda claims: jwt.encode(claims, key, _ALGORITHM))


def _load(pem: str) -> RSAPrivateKey:
    try:
        # An environment variable of one line holds the line ends as \n.
        key = load_pem_private_key(pem.replace("\\n", "\n").encode(), password=None)
    except (ValueError, TypeError) as error:  # no PEM, a kind of key that is unknown, or one with a password
        raise _no_key() from error
    if not isinstance(key, RSAPrivateKey):
        raise _no_key()
    return key


def _no_key() -> ConfigurationError:
    return ConfigurationError(
        "ACROUTER_GITHUB_PRIVATE_KEY or _FILE is no private key. Give the PEM text or file that GitHub made; "
        "docs/setup.md shows where it comes from."
    )

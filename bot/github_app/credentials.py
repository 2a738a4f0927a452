"""The App's credentials as GitHub gives them out once, and the files that keep them for this user alone."""

import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from bot.github.app_key import signed_as
from bot.github_app.errors import GitHubAppError
from bot.github_app.needs import WEBHOOK_PATH
from bot.github_app.place import Place
from store.data_dir import make_data_dir
from store.scrub import register_secret, scrub

_TIMEOUT_S = 30.0
_JSON = {"Accept": "application/vnd.github+json", "User-Agent": "acrouter"}


@dataclass(frozen=True)
class Credentials:
    app_id: int
    slug: str
    page: str
    """The App's own page, from which it is installed."""
    private_key: str
    webhook_secret: str
    """Made here: GitHub is told, not asked."""

    def __repr__(self) -> str:
        return f"Credentials(app_id={self.app_id}, slug={self.slug!r})"


def exchange(place: Place, code: str, public_url: str) -> Credentials:
    """Turn the code of the manifest flow into credentials, and set the webhook's secret. A code works once, an hour.

    https://docs.github.com/en/rest/apps/apps#create-a-github-app-from-a-manifest
    https://docs.github.com/en/rest/apps/webhooks#update-a-webhook-configuration-for-an-app

    Raises:
        GitHubAppError: GitHub refused; where the App is there already, the message says so.
    """
    with httpx.Client(base_url=place.api_url, timeout=_TIMEOUT_S, headers=_JSON) as client:
        made: dict[str, Any] = _ask(
            client, "POST", f"/app-manifests/{code}/conversions", "turn the code into credentials"
        )
        for name in ("pem", "webhook_secret", "client_secret"):
            register_secret(made.get(name))
        secret = secrets.token_hex(32)
        register_secret(secret)
        credentials = Credentials(
            made["id"], str(made.get("slug") or ""), str(made.get("html_url") or ""), made["pem"], secret
        )
        token = signed_as(credentials.app_id, credentials.private_key).create_jwt()
        config = {"url": f"{public_url}{WEBHOOK_PATH}", "content_type": "json", "insecure_ssl": "0", "secret": secret}
        _ask(client, "PATCH", "/app/hook/config", "set the webhook's secret", config, token)
    return credentials


def keep(credentials: Credentials, folder: Path, place: Place, public_url: str) -> dict[str, str]:
    """Write key and secret into files of mode 0600 and return the settings that name them.

    Raises:
        GitHubAppError: a file is there already, or cannot be written.
    """
    key, secret = folder / "github-app.pem", folder / "github-webhook-secret"
    try:
        make_data_dir(folder)
        _write_new(key, credentials.private_key)
        _write_new(secret, credentials.webhook_secret)
    except OSError as error:
        raise GitHubAppError(f"The credentials cannot be written to {folder}: {error.strerror}.") from error
    return {
        "ACROUTER_GITHUB_APP_ID": str(credentials.app_id),
        "ACROUTER_GITHUB_PRIVATE_KEY_FILE": str(key.absolute()),
        "ACROUTER_GITHUB_WEBHOOK_SECRET_FILE": str(secret.absolute()),
        "ACROUTER_GITHUB_API_URL": place.api_url,
        "ACROUTER_GITHUB_WEB_URL": place.web_url,
        "ACROUTER_PUBLIC_URL": public_url,
    }


def require_room(folder: Path) -> None:
    """Say before anything is created at GitHub that its credentials could not be kept.

    Raises:
        GitHubAppError: credentials of an App are there already.
    """
    for name in ("github-app.pem", "github-webhook-secret"):
        if (folder / name).exists():
            raise GitHubAppError(
                f"{folder / name} is there already. Move it away, or give another folder with --folder."
            )


def _write_new(path: Path, text: str) -> None:
    # Made for this user alone from the start, and never over another App's key.
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text if text.endswith("\n") else f"{text}\n")


def _ask(
    client: httpx.Client, method: str, path: str, action: str, body: object = None, token: str = ""
) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        answer = client.request(method, path, json=body, headers=headers)
    except httpx.HTTPError as error:
        raise GitHubAppError(f"GitHub could not be reached to {action}: {type(error).__name__}.") from error
    if answer.is_error:
        words = scrub(answer.text[:300])
        raise GitHubAppError(f"GitHub could not {action} (HTTP {answer.status_code}): {words}")
    found: dict[str, Any] = answer.json()
    return found

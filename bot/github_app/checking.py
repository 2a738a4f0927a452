"""Compares the App at GitHub with what acrouter needs: its rights, its webhook, and what each installation granted."""

from collections.abc import Iterator
from typing import Any

from bot.github.client import Clients
from bot.github_app.findings import Finding
from bot.github_app.needs import WEBHOOK_PATH, lacking_events, lacking_permissions
from store.settings import Settings
from workers.errors import ForgeError

_GRANT = "Grant them in the App's settings at GitHub."
_MOST_PAGES = 20


def check_app(settings: Settings) -> list[Finding]:
    """Return what was found, in the order in which one would mend things.

    Raises:
        ConfigurationError: the App's credentials are missing or wrong.
    """
    clients = Clients(settings)
    try:
        return list(_findings(settings, clients))
    except ForgeError as error:
        return [Finding("wrong", "GitHub App", str(error), "docs/setup.md shows where the credentials come from.")]


def _findings(settings: Settings, clients: Clients) -> Iterator[Finding]:
    app = clients.as_app("GET", "/app", "read the App")
    yield Finding("ok", "GitHub App", f"GitHub knows it as {app.get('slug') or app.get('name')}")
    yield from compare(app)
    yield from _webhook(settings, clients)
    yield from _installations(clients)


def compare(app: dict[str, Any]) -> Iterator[Finding]:
    """Compare the permissions and events of an App, as `GET /app` gives it."""
    lacking, silent = lacking_permissions(app.get("permissions") or {}), lacking_events(app.get("events") or [])
    if lacking:
        yield Finding("wrong", "permissions", f"missing: {', '.join(lacking)}", _GRANT)
    else:
        yield Finding("ok", "permissions", "all that is needed")
    if silent:
        yield Finding("wrong", "events", f"not subscribed: {', '.join(silent)}", "Tick them in the App's settings.")
    else:
        yield Finding("ok", "events", "all that is needed")


def _webhook(settings: Settings, clients: Clients) -> Iterator[Finding]:
    config = clients.as_app("GET", "/app/hook/config", "read the webhook's configuration")
    url = str(config.get("url") or "")
    wanted = f"{settings.public_url.rstrip('/')}{WEBHOOK_PATH}"
    if config.get("content_type") != "json":
        yield Finding(
            "wrong", "webhook", "its content type is not application/json", "Change it in the App's settings."
        )
    elif not settings.public_url:
        yield Finding("warning", "webhook", url or "no address", "Set ACROUTER_PUBLIC_URL to have it compared.")
    elif url != wanted:
        yield Finding("wrong", "webhook", url or "no address", f"Set it to {wanted} in the App's settings.")
    else:
        yield Finding("ok", "webhook", url)


def _installations(clients: Clients) -> Iterator[Finding]:
    found = False
    for page in range(1, _MOST_PAGES + 1):
        _, items = clients.page_as_app(f"/app/installations?per_page=100&page={page}", "list the installations")
        for item in items:
            found = True
            account = str((item.get("account") or {}).get("login") or item["id"])
            if item.get("suspended_at"):
                yield Finding("warning", f"installation {account}", "suspended", "Its owner can unsuspend it.")
            elif lacking := lacking_permissions(item.get("permissions") or {}):
                advice = "Its owner must accept the App's new permissions."
                yield Finding("wrong", f"installation {account}", f"not granted: {', '.join(lacking)}", advice)
            else:
                yield Finding("ok", f"installation {account}", "all that is needed")
        if len(items) < 100:
            break
    if not found:
        yield Finding("warning", "installations", "none", "Install the App from its page at GitHub.")

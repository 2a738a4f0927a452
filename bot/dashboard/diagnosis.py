"""The checks of `acrouter doctor` on the dashboard: where people reach it, and who may sign in."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from bot.dashboard.github_people import GitHubPeople
from bot.dashboard.roles import parse_circle
from bot.github_app.findings import Finding
from store.settings import PREFIX, Settings

_LISTS = ("dashboard_allowed", "dashboard_operators", "dashboard_admins")


def check_dashboard(settings: Settings) -> Iterator[Finding]:
    """Read who may look, as `acrouter up` does, and say where nobody can.

    Raises:
        ConfigurationError: a setting of the sign-in is missing or wrong.
    """
    if path := urlsplit(settings.public_url).path.strip("/"):
        yield Finding(
            "warning",
            "dashboard",
            f"ACROUTER_PUBLIC_URL has the path /{path}, and pages link from the top of their host",
            "Give acrouter a host's name of its own.",
        )
    given = [PREFIX + name.upper() for name in _LISTS if parse_circle(getattr(settings, name), PREFIX + name.upper())]
    if not settings.github_client_id:
        if given:
            yield Finding(
                "warning",
                "dashboard",
                f"nobody can sign in by {', '.join(given)}: ACROUTER_GITHUB_CLIENT_ID is not set",
                "docs/dashboard.md says how to let a team in.",
            )
        return
    GitHubPeople(settings)
    if settings.public_url:
        yield Finding("ok", "dashboard", f"people sign in with GitHub at {settings.public_url.rstrip('/')}/sign-in")
    else:
        yield Finding(
            "warning",
            "dashboard",
            "people can sign in with GitHub from this machine alone: ACROUTER_PUBLIC_URL is not set",
            "Set it to the address under which people reach this server.",
        )

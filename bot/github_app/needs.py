"""What the App needs of GitHub, and what of it is lacking."""

from collections.abc import Collection, Mapping
from typing import Any

PERMISSIONS = {
    "metadata": "read",
    "contents": "write",
    "issues": "write",
    "pull_requests": "write",
    "checks": "write",
    "actions": "read",
}
"""Of a repository. `actions: write` is for running flakes once more, `members: read` (of the organisation) for teams in
`.acrouter.yml`: both are left to whoever wants that."""
EVENTS = (
    "issues",
    "issue_comment",
    "pull_request",
    "pull_request_review",
    "push",
    "check_suite",
    "check_run",
    "workflow_run",
)
"""What GitHub must tell us. Installation events come to every App."""
WEBHOOK_PATH = "/webhooks/github"

_LEVELS = {"read": 1, "write": 2, "admin": 3}


def lacking_permissions(granted: Mapping[str, str]) -> list[str]:
    """Return what is missing, as `contents:write`."""
    return [
        f"{name}:{level}"
        for name, level in PERMISSIONS.items()
        if _LEVELS.get(granted.get(name, ""), 0) < _LEVELS[level]
    ]


def lacking_events(subscribed: Collection[str]) -> list[str]:
    return [event for event in EVENTS if event not in subscribed]


def manifest(name: str, public_url: str, redirect_url: str) -> dict[str, Any]:
    """Return the App's manifest.

    https://docs.github.com/en/apps/sharing-github-apps/registering-a-github-app-from-a-manifest
    """
    return {
        "name": name,
        "url": public_url,
        "description": "Gives each coding task to the model likeliest to solve it for the money.",
        "public": False,
        "redirect_url": redirect_url,
        "hook_attributes": {"url": f"{public_url}{WEBHOOK_PATH}", "active": True},
        "default_permissions": dict(PERMISSIONS),
        "default_events": list(EVENTS),
    }

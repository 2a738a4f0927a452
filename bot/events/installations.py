"""Where the App is installed, and the webhook's first sign of life."""

from dataclasses import dataclass

from bot.events.facts import RepositoryFact, Sender, sender_of
from bot.payload import Payload


@dataclass(frozen=True)
class InstallationChanged:
    """The App was installed, removed, suspended or given other permissions."""

    action: str
    installation_id: int
    account: str
    suspended: bool
    removed: bool
    repositories: tuple[RepositoryFact, ...]
    sender: Sender


@dataclass(frozen=True)
class RepositoriesChanged:
    """An installation covers other repositories than before."""

    installation_id: int
    account: str
    added: tuple[RepositoryFact, ...]
    removed_ids: tuple[int, ...]
    sender: Sender


@dataclass(frozen=True)
class Ping:
    zen: str


def read_installation(payload: Payload) -> InstallationChanged:
    installation = payload.object("installation")
    action = payload.text("action")
    account = _account(installation)
    number = installation.number("id")
    return InstallationChanged(
        action=action,
        installation_id=number,
        account=account,
        suspended=action == "suspend" or (action != "unsuspend" and installation.data.get("suspended_at") is not None),
        removed=action == "deleted",
        repositories=tuple(_listed(item, number) for item in payload.objects("repositories")),
        sender=sender_of(payload),
    )


def read_installation_repositories(payload: Payload) -> RepositoriesChanged:
    installation = payload.object("installation")
    number = installation.number("id")
    return RepositoriesChanged(
        installation_id=number,
        account=_account(installation),
        added=tuple(_listed(item, number) for item in payload.objects("repositories_added")),
        removed_ids=tuple(item.number("id") for item in payload.objects("repositories_removed")),
        sender=sender_of(payload),
    )


def read_ping(payload: Payload) -> Ping:
    return Ping(payload.optional_text("zen"))


def _listed(repository: Payload, installation_id: int) -> RepositoryFact:
    """A repository as installation events list it: without its default branch."""
    return RepositoryFact(
        id=repository.number("id"),
        full_name=repository.text("full_name"),
        default_branch="",
        private=repository.flag("private"),
        installation_id=installation_id,
    )


def _account(installation: Payload) -> str:
    account = installation.optional_object("account")
    if account is None:
        return ""
    return account.optional_text("login") or account.optional_text("slug")

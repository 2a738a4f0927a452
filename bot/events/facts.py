"""What most events carry, and how it is read. Everything that a person typed is untrusted."""

from dataclasses import dataclass

from bot.payload import Payload


@dataclass(frozen=True)
class Sender:
    """Who did it."""

    login: str
    is_bot: bool


@dataclass(frozen=True)
class RepositoryFact:
    """A repository as an event shows it."""

    id: int
    full_name: str
    default_branch: str
    private: bool
    installation_id: int | None
    """None where the event did not come through an installation of the App."""


@dataclass(frozen=True)
class Ignored:
    """An event that asks nothing of acrouter."""

    reason: str


def other_action(payload: Payload, *wanted: str) -> Ignored | None:
    action = payload.text("action")
    return None if action in wanted else Ignored(f"the action '{action}' asks nothing of acrouter")


def sender_of(payload: Payload) -> Sender:
    """The sender; GitHub leaves it out for what it does by itself."""
    return user_of(payload, "sender")


def user_of(payload: Payload, key: str) -> Sender:
    """Somebody whom a payload names; an account that is gone is nobody, who may do nothing."""
    user = payload.optional_object(key)
    if user is None:
        return Sender("", is_bot=True)
    named = sender_named(user.text("login"))
    return Sender(named.login, is_bot=named.is_bot or user.optional_text("type") == "Bot")


def sender_named(login: str) -> Sender:
    """Somebody of whom the login alone is known; nobody where it is empty."""
    return Sender(login, is_bot=not login or login.endswith("[bot]"))


def repository_of(payload: Payload) -> RepositoryFact:
    repository = payload.object("repository")
    installation = payload.optional_object("installation")
    return RepositoryFact(
        id=repository.number("id"),
        full_name=repository.text("full_name"),
        default_branch=repository.optional_text("default_branch"),
        private=repository.flag("private"),
        installation_id=installation.number("id") if installation else None,
    )

"""The local GitHub itself: its state, the webhooks that it sends, and how it refuses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bot.demo.hub import payloads
from bot.demo.hub.shapes import repository_json, user_json
from bot.demo.hub.state import Repository, State, User
from bot.demo.hub.webhooks import WebhookSender
from bot.errors import BotError

Json = dict[str, Any]


class HubRefusal(BotError):  # noqa: N818  (it is an answer of the API)
    """The API refuses; `status`, the message and `errors` are what it answers."""

    def __init__(self, status: int, message: str, errors: Sequence[Json] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.errors = errors

    def as_json(self) -> Json:
        body: Json = {"message": str(self), "documentation_url": "https://docs.github.com/rest"}
        return {**body, "errors": list(self.errors)} if self.errors else body


def not_found() -> HubRefusal:
    return HubRefusal(404, "Not Found")


def invalid(resource: str, field: str, code: str = "invalid") -> HubRefusal:
    return HubRefusal(422, "Validation Failed", [{"resource": resource, "field": field, "code": code}])


def invalid_because(resource: str, message: str) -> HubRefusal:
    return HubRefusal(422, "Validation Failed", [{"resource": resource, "code": "custom", "message": message}])


def text_of(body: Mapping[str, Any], field: str, resource: str) -> str:
    """Return a required text of a request's body.

    Raises:
        HubRefusal: it is missing or blank.
    """
    value = body.get(field)
    if not isinstance(value, str) or not value.strip():
        raise invalid(resource, field, "missing_field")
    return value


@dataclass(frozen=True)
class Hub:
    """What every operation needs; whoever changes the state holds `state.lock`."""

    state: State
    sender: WebhookSender
    base_url: str

    def tell(self, event: str, repository: Repository, sender: User, /, **body: Any) -> None:
        """Send a webhook about a repository."""
        self.sender.send(event, {**self.common(repository, sender), **body})

    def common(self, repository: Repository, sender: User) -> Json:
        about = repository_json(repository, self.base_url)
        return payloads.envelope(self.state.installation_id, about, user_json(sender, self.base_url))

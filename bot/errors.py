"""The bot's branch of the error tree."""

from store.errors import AcrouterError
from workers.errors import ForgeTemporary


class BotError(AcrouterError):
    """Base of what can go wrong between GitHub and us."""


class SignatureError(BotError):
    """A webhook's signature is missing or wrong."""


class PayloadError(BotError):
    """A webhook's body is not what GitHub describes."""


class NotStoredError(BotError):
    """A webhook's delivery is not in the database, so it must not be acknowledged."""


class CommandError(BotError):
    """A `/route` command that cannot be carried out; the message is the answer to its writer."""


class Moved(BotError, ForgeTemporary):  # noqa: N818
    """What was asked for is at another address now: the repository was renamed, or the issue transferred."""

    def __init__(self, address: str) -> None:
        super().__init__("GitHub has moved what was asked for; it is asked for again under its present name.")
        self.address = address
        """Where GitHub says that it is; empty where it does not say."""


class NotYet(BotError, ForgeTemporary):  # noqa: N818
    """What an event means shows when a task has gone on; it is handled again in a moment."""


class CredentialsRefused(BotError, ForgeTemporary):  # noqa: N818
    """GitHub answered 401: a token died early, or the App's key is wrong."""

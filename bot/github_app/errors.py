"""What can go wrong while the App is created."""

from bot.errors import BotError


class GitHubAppError(BotError):
    """The App could not be created, or its credentials not be kept; the message says what to do."""

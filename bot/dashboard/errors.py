"""What the dashboard refuses, as words for the person who asked."""

from bot.errors import BotError


class DashboardError(BotError):
    """Base of the dashboard's own errors."""


class SignInError(DashboardError):
    """Somebody could not be signed in; the message says why and what to do."""


class BadRequestError(DashboardError):
    """A page, a filter or a form has a value that cannot be; the message names it."""


class GitHubSilentError(SignInError):
    """GitHub did not answer: nothing is known of anybody's rights."""

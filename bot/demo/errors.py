"""The demo's errors, a twig of the bot's branch."""

from bot.errors import BotError


class DemoError(BotError):
    """The demo cannot go on; the message says what is missing and what to do."""


class DownloadError(DemoError):
    """A source distribution could not be had from the package index, or is not the one that was asked for."""


class CatalogueError(DemoError):
    """The catalogue of bugs is wrong, or does not fit the source distributions that it names."""


class StoryError(DemoError):
    """The demo ran, but the loop did not do what the demo is there to show."""

"""Every call to GitHub: authentication, the client, and the Forge that the workers ask for."""

from bot.github.forge import GitHubForge

__all__ = ["GitHubForge"]

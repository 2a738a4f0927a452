"""Who may start what, by the repository's configuration and GitHub's answer at this moment."""

from bot.events import Sender
from bot.handlers.context import Context
from store.repo_config import RepositoryConfig
from store.repo_yaml import RepositoryConfigurationError
from workers.configuration import InForce, in_force
from workers.ports import Permission

_RANK: dict[Permission, int] = {"none": 0, "read": 1, "triage": 2, "write": 3, "maintain": 4, "admin": 5}


def rules_now(context: Context) -> InForce:
    """Return the configuration in force, read from the default branch now.

    A file that has a mistake and was never valid gives the defaults: the task that is started by them reads it again,
    and is refused with the mistake's words before it spends anything.
    """
    try:
        return in_force(context.database, context.forge, context.repository, context.settings)
    except RepositoryConfigurationError as error:
        return InForce(RepositoryConfig(), onboarded=True, mistakes=error.mistakes)


def may_write(context: Context, sender: Sender) -> bool:
    """Ask GitHub now whether a person may push to the repository. A bot is no person."""
    return is_writer(permission_of(context, sender))


def permission_of(context: Context, sender: Sender) -> Permission:
    """Ask GitHub now what a person may do. A bot is no person."""
    return "none" if sender.is_bot else context.forge.permission(context.repository, sender.login)


def is_writer(permission: Permission) -> bool:
    return _RANK[permission] >= _RANK["write"]


def why_not(context: Context, sender: Sender, permission: Permission, config: RepositoryConfig) -> str | None:
    """Return why somebody with this permission may not start work here, as a sentence, or None where they may."""
    if sender.is_bot:
        return None if _is_allowed_bot(context, sender, config) else f"{sender.login} is a bot that is not on the list."
    if _RANK[permission] < _RANK[config.who.permission]:
        return f"Here it takes {config.who.permission} permission to give acrouter work (`who.permission`)."
    if config.who.teams and not any(
        context.forge.is_team_member(context.repository, team, sender.login) for team in config.who.teams
    ):
        return f"Here only members of {', '.join(config.who.teams)} give acrouter work (`who.teams`)."
    return None


def _is_allowed_bot(context: Context, sender: Sender, config: RepositoryConfig) -> bool:
    listed = {login.casefold() for login in config.who.bots}
    return sender.login.casefold() in listed and sender.login != context.forge.login()

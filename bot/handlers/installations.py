"""Where the App is installed."""

from bot.events import InstallationChanged, RepositoriesChanged
from bot.repositories import put_installation, put_repositories
from store.database import Database


def changed(database: Database, event: InstallationChanged) -> None:
    """Write down an installation with the repositories that it names."""
    put_installation(database, event.installation_id, event.account, suspended=event.suspended, removed=event.removed)
    put_repositories(database, event.installation_id, () if event.removed else event.repositories, ())


def repositories_changed(database: Database, event: RepositoriesChanged) -> None:
    """Write down which repositories an installation gained and lost."""
    put_installation(database, event.installation_id, event.account, suspended=False, removed=False)
    put_repositories(database, event.installation_id, event.added, event.removed_ids)

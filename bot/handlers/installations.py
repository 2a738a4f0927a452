"""Where the App is installed."""

from bot.events import InstallationChanged, RepositoriesChanged
from bot.repositories import put_installation, put_repositories
from store.database import Database
from workers.control import stop_where_removed
from workers.ports import Queue


def changed(database: Database, queue: Queue, event: InstallationChanged) -> None:
    """Write down an installation with the repositories that it names. Where it is removed, the work there ends."""
    put_installation(database, event.installation_id, event.account, suspended=event.suspended, removed=event.removed)
    put_repositories(database, event.installation_id, () if event.removed else event.repositories, ())
    if event.removed:
        stop_where_removed(database, queue, event.installation_id, event.sender.login)


def repositories_changed(database: Database, queue: Queue, event: RepositoriesChanged) -> None:
    """Write down which repositories an installation gained and lost."""
    put_installation(database, event.installation_id, event.account, suspended=False, removed=False)
    put_repositories(database, event.installation_id, event.added, event.removed_ids)
    if event.removed_ids:
        stop_where_removed(database, queue, event.installation_id, event.sender.login)

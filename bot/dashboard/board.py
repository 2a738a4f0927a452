"""What the dashboard's routes work with, put together once for a web process."""

from dataclasses import dataclass, field

import structlog
from jinja2 import Environment

from bot.dashboard.facts import Facts
from bot.dashboard.facts_store import FactsStore
from bot.dashboard.github_people import GitHubPeople
from bot.dashboard.rates import Rates, RateWatch
from bot.dashboard.render import environment
from bot.dashboard.roles import Role, Viewer
from bot.dashboard.secrets import Signer, signer_of
from bot.dashboard.sessions import Sessions
from routing.errors import PoolError
from routing.pool import ModelSpec, load_pool
from store.database import Database
from store.settings import Settings
from workers.ports import Queue

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Board:
    """One web process's dashboard."""

    settings: Settings
    database: Database
    queue: Queue
    facts: FactsStore
    signer: Signer
    sessions: Sessions
    github: GitHubPeople | None
    """None: nobody can sign in with GitHub."""
    rates: RateWatch
    pages: Environment = field(default_factory=environment)
    _pool: dict[float, dict[str, ModelSpec]] = field(default_factory=dict)
    """The pool by the time of its file's change."""

    def facts_for(self, viewer: Viewer) -> Facts:
        """Return the facts of what a viewer may see."""
        return self.facts.current().of_repositories(viewer.repositories)

    def specs(self) -> dict[str, ModelSpec]:
        """Return the pool's models by name; a pool that cannot be read has none, and `acrouter doctor` says why."""
        path = self.settings.models_file
        changed = path.stat().st_mtime if path.is_file() else 0.0
        known = self._pool.get(changed)
        if known is None:
            try:
                known = {spec.name: spec for spec in load_pool(path).models}
            except PoolError as error:
                _log.info("dashboard.pool_unknown", error=str(error))
                known = {}
            self._pool.clear()
            self._pool[changed] = known
        return known

    def names_for(self, viewer: Viewer, facts: Facts) -> frozenset[str]:
        """Return the names of the repositories that a viewer can read: titles of others stay hidden."""
        return frozenset(name for key, name in facts.repositories.items() if viewer.can_read(key))

    def rates_for(self, viewer: Viewer, facts: Facts) -> tuple[Rates, ...]:
        """Return GitHub's limits of the accounts that a viewer may know of; who may act sees all of them."""
        known = self.rates.last()
        if viewer.repositories is None or viewer.may(Role.OPERATOR):
            return known
        accounts = {name.partition("/")[0] for name in self.names_for(viewer, facts)}
        return tuple(one for one in known if one.account in accounts)


def make_board(settings: Settings, database: Database, queue: Queue) -> Board:
    """Put the dashboard together.

    Raises:
        ConfigurationError: a setting of the dashboard is wrong.
    """
    signer = signer_of(settings)
    return Board(
        settings=settings,
        database=database,
        queue=queue,
        facts=FactsStore(database),
        signer=signer,
        sessions=Sessions(database, signer, settings.dashboard_session_hours),
        github=GitHubPeople(settings) if settings.github_client_id else None,
        rates=RateWatch(settings, database),
    )

"""How many calls GitHub still takes from the App, asked for at most once a minute and never while a page waits.

GitHub counts for each installation apart (https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api).
"""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass

import httpx
import structlog
from sqlmodel import Session, col, func, select

from bot.github.client import Clients, Token
from store.database import Database
from store.errors import AcrouterError
from store.settings import Settings
from store.tables import Installation, Repository
from store.types import utc_now
from workers.ports import RepositoryRef

_log = structlog.get_logger(__name__)
_EVERY_S = 60.0
_MOST = 20
"""Installations that are asked about."""
_SCARCE = 0.1


@dataclass(frozen=True)
class Rates:
    account: str
    left: int
    limit: int
    resets: float
    """Seconds since 1970."""

    @property
    def scarce(self) -> bool:
        return self.left < self.limit * _SCARCE


class RateWatch:
    """Knows GitHub's last words on its limit, as every answer carries them; GET /rate_limit costs nothing of it."""

    def __init__(self, settings: Settings, database: Database) -> None:
        self._settings = settings
        self._database = database
        self._lock = threading.Lock()
        self._asked_at = -_EVERY_S
        self._known: tuple[Rates, ...] = ()
        self._tokens: dict[int, Token] = {}

    def last(self) -> tuple[Rates, ...]:
        """Return what was last heard, the scarcest first, and ask again in the background where that is old."""
        with self._lock:
            due = time.monotonic() - self._asked_at >= _EVERY_S
            if due:
                self._asked_at = time.monotonic()
        if due and self._settings.github_app_id is not None:
            threading.Thread(target=self.ask, name="rate-limit", daemon=True).start()
        return self._known

    def ask(self) -> None:
        """Ask for each installation; of one that does not answer, the last words are forgotten."""
        self._asked_at = time.monotonic()
        try:
            with self._database.reading() as session:
                asked = _one_repository_each(session)
            clients = Clients(self._settings)
        except AcrouterError as error:
            _log.info("dashboard.rate_limit_unknown", error=str(error))
            return
        found = [rates for account, ref in asked if (rates := self._of(clients, account, ref)) is not None]
        self._known = tuple(sorted(found, key=lambda one: one.left / max(1, one.limit)))

    def _of(self, clients: Clients, account: str, ref: RepositoryRef) -> Rates | None:
        try:
            token = self._tokens.get(ref.installation_id)
            if token is None or token.expires_at <= utc_now():
                token = self._tokens[ref.installation_id] = clients.mint(ref, {"metadata": "read"})
            answer = httpx.get(
                f"{self._settings.github_api_url.rstrip('/')}/rate_limit",
                headers={"Authorization": f"Bearer {token.value}", "User-Agent": "acrouter"},
                timeout=10,
            )
            return read_rates(account, answer.raise_for_status().headers)
        except (AcrouterError, httpx.HTTPError, ValueError, KeyError) as error:
            self._tokens.pop(ref.installation_id, None)
            _log.info("dashboard.rate_limit_unknown", account=account, error=type(error).__name__)
            return None


def read_rates(account: str, headers: Mapping[str, str]) -> Rates:
    """Read the headers that GitHub adds to every answer.

    Raises:
        KeyError, ValueError: they are not there, or no numbers.
    """
    left, limit, resets = (int(headers[f"x-ratelimit-{name}"]) for name in ("remaining", "limit", "reset"))
    return Rates(account, left, limit, float(resets))


def _one_repository_each(session: Session) -> list[tuple[str, RepositoryRef]]:
    """Return an active repository of each installation: a token covers one."""
    chosen = select(func.min(Repository.id)).where(col(Repository.active).is_(True)).group_by("installation_id")
    query = (
        select(Installation.account, Repository)
        .join(Repository, col(Repository.installation_id) == col(Installation.id))
        .where(col(Repository.id).in_(chosen), col(Installation.suspended).is_(False))
        .where(col(Installation.removed).is_(False))
        .order_by(col(Installation.id))
        .limit(_MOST)
    )
    return [
        (account, RepositoryRef(row.id, row.installation_id, row.full_name)) for account, row in session.exec(query)
    ]

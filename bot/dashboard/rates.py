"""How many calls GitHub still takes from the App, asked for at most once a minute and never while a page waits."""

import threading
import time
from dataclasses import dataclass

import httpx
import structlog
from sqlmodel import col, select

from bot.github.client import Clients
from store.database import Database
from store.errors import AcrouterError
from store.settings import Settings
from store.tables import Repository
from workers.ports import RepositoryRef

_log = structlog.get_logger(__name__)
_EVERY_S = 60.0


@dataclass(frozen=True)
class Rates:
    left: int
    limit: int
    resets: float
    """Seconds since 1970."""


class RateWatch:
    """Knows the last answer of GET /rate_limit, which itself costs nothing of the limit."""

    def __init__(self, settings: Settings, database: Database) -> None:
        self._settings = settings
        self._database = database
        self._lock = threading.Lock()
        self._asked_at = -_EVERY_S
        self._known: Rates | None = None

    def last(self) -> Rates | None:
        """Return what was last heard, and ask again in the background where that is old."""
        with self._lock:
            due = time.monotonic() - self._asked_at >= _EVERY_S
            if due:
                self._asked_at = time.monotonic()
        if due and self._settings.github_app_id is not None:
            threading.Thread(target=self._ask, name="rate-limit", daemon=True).start()
        return self._known

    def _ask(self) -> None:
        try:
            with self._database.reading() as session:
                row = session.exec(select(Repository).where(col(Repository.active).is_(True)).limit(1)).first()
            if row is None:
                return
            ref = RepositoryRef(row.id, row.installation_id, row.full_name)
            token = Clients(self._settings).mint(ref, {"metadata": "read"})
            answer = httpx.get(
                f"{self._settings.github_api_url.rstrip('/')}/rate_limit",
                headers={"Authorization": f"Bearer {token.value}", "User-Agent": "acrouter"},
                timeout=10,
            )
            core = answer.raise_for_status().json()["resources"]["core"]
            self._known = Rates(int(core["remaining"]), int(core["limit"]), float(core["reset"]))
        except (AcrouterError, httpx.HTTPError, ValueError, KeyError) as error:
            _log.info("dashboard.rate_limit_unknown", error=type(error).__name__)

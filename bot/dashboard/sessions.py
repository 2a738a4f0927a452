"""Sessions: a random word in a signed cookie, and a row that says whose it is and what they may see."""

import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

import structlog
from sqlmodel import col, delete

from bot.dashboard.errors import GitHubSilentError, SignInError
from bot.dashboard.roles import Role, Viewer
from bot.dashboard.secrets import Signer, digest
from store.database import Database
from store.tables import AuditEntry, DashboardSession
from store.types import utc_now

_log = structlog.get_logger(__name__)
COOKIE = "acrouter_session"
CHECK_EVERY = timedelta(minutes=15)
"""Rights on GitHub are asked for again after that."""
LONGEST_UNCHECKED = timedelta(hours=1)
"""While GitHub does not answer, the rights of the last check hold for so long."""


@dataclass(frozen=True)
class Rights:
    """What GitHub says of somebody at this moment."""

    login: str
    role: Role
    repositories: tuple[int, ...]


class Asks(Protocol):
    def rights(self, token: str) -> Rights:
        """Return what the holder of a GitHub token may see.

        Raises:
            SignInError: they may not look any more, or the token is dead.
        """
        ...


class Sessions:
    """Makes, finds and ends sessions."""

    def __init__(self, database: Database, signer: Signer, hours: float) -> None:
        self._database = database
        self._signer = signer
        self._life = timedelta(hours=hours)

    @property
    def life_s(self) -> int:
        return int(self._life.total_seconds())

    def begin(self, rights: Rights, token: str) -> str:
        """Sign a person of GitHub in and return the cookie's value."""
        return self._begin(rights.login, rights.role, list(rights.repositories), self._signer.seal(token))

    def begin_local(self) -> str:
        """Sign in whoever holds the one-time link of this machine, as its admin."""
        return self._begin("localhost", Role.ADMIN, None, "")

    def find(self, cookie: str, github: Asks | None) -> Viewer | None:
        """Return who holds a cookie, or None where it is forged, ended, or the rights are gone."""
        word = self._signer.read(cookie, "session", self.life_s)
        if not isinstance(word, str):
            return None
        with self._database.reading() as session:
            row = session.get(DashboardSession, digest(word))
        if row is None or row.expires_at <= utc_now():
            return None
        if row.sealed_token and utc_now() - row.checked_at > CHECK_EVERY:
            row = self._check_again(row, github)
            if row is None:
                return None
        repositories = None if row.repositories is None else tuple(row.repositories)
        return Viewer(row.login, Role(row.role), repositories, self._signer.csrf(word))

    def end(self, cookie: str) -> None:
        """Sign out; a second time does nothing."""
        word = self._signer.read(cookie, "session", self.life_s)
        if isinstance(word, str):
            self._forget(digest(word))

    def _begin(self, login: str, role: Role, repositories: list[int] | None, sealed: str) -> str:
        word = secrets.token_urlsafe(32)
        now = utc_now()
        with self._database.session() as session:
            session.execute(delete(DashboardSession).where(col(DashboardSession.expires_at) <= now))
            session.add(
                DashboardSession(
                    id=digest(word),
                    login=login,
                    role=role,
                    repositories=repositories,
                    sealed_token=sealed,
                    expires_at=now + self._life,
                )
            )
            session.add(AuditEntry(actor=login, action="signed in", data={"role": role}))
        return self._signer.sign(word, "session")

    def _check_again(self, row: DashboardSession, github: Asks | None) -> DashboardSession | None:
        token = self._signer.unseal(row.sealed_token)
        try:
            if github is None or token is None:
                raise SignInError("The rights cannot be asked for any more.")
            rights = github.rights(token)
        except SignInError as error:
            if isinstance(error, GitHubSilentError) and utc_now() - row.checked_at < LONGEST_UNCHECKED:
                return row
            _log.info("dashboard.session_ended", login=row.login, reason=str(error))
            self._forget(row.id)
            return None
        with self._database.session() as session:
            kept = session.get(DashboardSession, row.id)
            if kept is None:
                return None
            kept.role = rights.role
            kept.repositories = list(rights.repositories)
            kept.checked_at = utc_now()
            session.add(kept)
        return kept

    def _forget(self, identity: str) -> None:
        with self._database.session() as session:
            session.execute(delete(DashboardSession).where(col(DashboardSession.id) == identity))

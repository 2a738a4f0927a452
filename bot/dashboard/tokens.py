"""Tokens for machines (`acrouter token create`), and the one-time link that signs a person in on localhost."""

import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import Literal

from sqlmodel import col, delete, or_, select

from bot.dashboard.errors import DashboardError
from bot.dashboard.secrets import digest
from store.database import Database
from store.suggest import did_you_mean
from store.tables import ApiToken, AuditEntry
from store.types import utc_now

SCOPES = {"read": "the JSON API and the CSV files", "metrics": "/metrics"}
_SIGN_IN = "sign-in"
_LINK_LIFE = timedelta(minutes=30)
_USED_AGAIN = timedelta(minutes=1)
"""`used_at` is not written more often."""


def create_token(database: Database, name: str, scopes: Sequence[str], *, by: str, days: int | None = None) -> str:
    """Make a token and return it, this once; the database keeps its digest. `days` None: it does not end.

    Raises:
        DashboardError: a scope is unknown, there is none, or the name is taken.
    """
    for scope in scopes:
        if scope not in SCOPES:
            raise DashboardError(
                f"There is no scope '{scope}'.{did_you_mean(scope, SCOPES)} There are: {', '.join(SCOPES)}."
            )
    if not scopes:
        raise DashboardError(f"A token needs a scope: {', '.join(SCOPES)}.")
    name = name.strip()
    if not 0 < len(name) <= 100:
        raise DashboardError("A token needs a name of at most 100 characters, by which it is revoked.")
    token = f"acr_{secrets.token_urlsafe(32)}"
    with database.session() as session:
        if session.exec(select(ApiToken.id).where(ApiToken.name == name)).first() is not None:
            raise DashboardError(f"There is a token '{name}'. Revoke it, or choose another name.")
        ends = utc_now() + timedelta(days=days) if days is not None else None
        session.add(ApiToken(name=name, digest=digest(token), scopes=" ".join(sorted(set(scopes))), expires_at=ends))
        session.add(AuditEntry(actor=by, action="token made", target=name, data={"scopes": sorted(set(scopes))}))
    return token


def list_tokens(database: Database) -> Sequence[ApiToken]:
    """Return the tokens, the newest first, links to sign in not among them."""
    with database.reading() as session:
        query = select(ApiToken).where(ApiToken.scopes != _SIGN_IN).order_by(col(ApiToken.id).desc())
        return session.exec(query).all()


def revoke_token(database: Database, name: str, *, by: str) -> None:
    """End a token.

    Raises:
        DashboardError: there is none of this name.
    """
    with database.session() as session:
        row = session.exec(select(ApiToken).where(ApiToken.name == name, ApiToken.scopes != _SIGN_IN)).first()
        if row is None:
            names = session.exec(select(ApiToken.name).where(ApiToken.scopes != _SIGN_IN)).all()
            raise DashboardError(f"There is no token '{name}'.{did_you_mean(name, names)}")
        session.delete(row)
        session.add(AuditEntry(actor=by, action="token revoked", target=name))


def holds(database: Database, token: str, scope: Literal["read", "metrics"]) -> str | None:
    """Return the name of a token that is alive and has a scope, or None."""
    now = utc_now()
    with database.reading() as session:
        row = session.exec(select(ApiToken).where(ApiToken.digest == digest(token))).first()
    if row is None or scope not in row.scopes.split() or (row.expires_at is not None and row.expires_at <= now):
        return None
    if row.used_at is None or now - row.used_at > _USED_AGAIN:
        with database.session() as session:
            kept = session.get(ApiToken, row.id)
            if kept is not None:
                kept.used_at = now
                session.add(kept)
    return row.name


def make_link_word(database: Database) -> str:
    """Return a word that signs in once, within half an hour, as this machine's admin."""
    word = secrets.token_urlsafe(32)
    with database.session() as session:
        session.execute(
            delete(ApiToken).where(
                col(ApiToken.scopes) == _SIGN_IN,
                or_(col(ApiToken.expires_at).is_(None), col(ApiToken.expires_at) <= utc_now()),
            )
        )
        session.add(ApiToken(name="link", digest=digest(word), scopes=_SIGN_IN, expires_at=utc_now() + _LINK_LIFE))
    return word


def use_link_word(database: Database, word: str) -> bool:
    """Use a link's word up; returns whether it was good."""
    with database.session() as session:
        used = session.execute(
            delete(ApiToken).where(
                col(ApiToken.digest) == digest(word),
                col(ApiToken.scopes) == _SIGN_IN,
                col(ApiToken.expires_at) > utc_now(),
            )
        )
        return bool(used.rowcount == 1)  # type: ignore[attr-defined]

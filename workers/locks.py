"""Turn-taking between transactions on one subject."""

import zlib

from sqlalchemy import text
from sqlmodel import Session


def take_turn(session: Session, subject: str) -> None:
    """Hold every other transaction that takes a turn on `subject` until this one ends.

    SQLite's write transactions follow each other anyway (see `store.database`).
    """
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text("SELECT pg_advisory_xact_lock(:space, :key)"), {"space": 7226, "key": _key(subject)})


def _key(subject: str) -> int:
    return zlib.crc32(subject.encode()) - 2**31  # Postgres takes a signed 32-bit number

"""The evidence in the database, which is the truth; every process's router catches up with it.

`revision` is the writer's clock in microseconds, always above the row's last one, and never below the highest: a clock
that was ahead for a moment must not hide what comes after it. Rows may be committed out of the order of their
revisions, by a slow transaction or a clock that lags: a reader looks back over `OVERLAP` each time and skips what it
has applied already.
"""

import contextlib
import gc
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Protocol, cast

import numpy as np
import sqlalchemy
import structlog
from sqlalchemy import ColumnElement, CursorResult, Row, and_, case, delete, literal, or_, update
from sqlalchemy.orm import aliased
from sqlmodel import Session, col, select

from routing.encoders import embedding_text
from routing.errors import EncoderError, RoutingError
from routing.evidence import validate
from routing.types import Dimension, Encoder, Evidence, Vector
from store.database import Database
from store.tables import MemoryEntry
from store.upsert import insert_into

OVERLAP_US = 10 * 60 * 1_000_000
"""Ten minutes: longer than any transaction here, and than clocks of machines in one installation differ."""
_PAGE = 1000
_FLOAT = np.dtype("<f4")
# Plain rows: objects of the ORM would cost more than all else that catching up does. The text would be most of what is
# read.
_READ = tuple(column for column in MemoryEntry.__table__.columns if column.name != "text")  # type: ignore[attr-defined]
_log = structlog.get_logger(__name__)


class _Learner(Protocol):
    def observe(self, evidence: Evidence) -> Evidence: ...


def save(session: Session, evidence: Evidence, encoder: Encoder | None) -> bool:
    """Insert or replace the row of `evidence.key` and return whether it is in the database now.

    One statement decides, so that two writers cannot undo each other: a provisional score never replaces a final one,
    nor an older one a later one. Give the evidence that `Router.observe` returned: it is embedded already; where it is
    not, that happens here, within the transaction, or without an encoder later, by `routing.reencoding`.

    Raises:
        RoutingError: a number is out of range.
    """
    validate(evidence)
    vector = evidence.embedding if encoder is not None and evidence.encoder == encoder.name else None
    words = embedding_text(evidence.title, evidence.text)
    if vector is None and words and encoder is not None:
        vector = encoder.encode([words])[0]
    values: dict[str, Any] = _columns(evidence) | {
        "encoder": "" if vector is None or encoder is None else encoder.name,
        "embedding": None if vector is None else packed_vector(vector),
        "revision": next_revision(),
    }
    insert = insert_into(session, MemoryEntry).values(**values)
    new = insert.excluded
    # An outcome may come without the task's words, or without what was said before it: what is known stays.
    kept = ("title", "link", "text", "repository", "language", "encoder")
    said = ("verifier_score", "views", "namings", "traits")
    changes: dict[str, Any] = {
        name: new[name] for name in values if name not in ("key", "created_at", "revision", "embedding", *kept, *said)
    }
    changes |= {name: case((new[name] == "", getattr(MemoryEntry, name)), else_=new[name]) for name in kept}
    changes["verifier_score"] = sqlalchemy.func.coalesce(new.verifier_score, MemoryEntry.verifier_score)
    changes |= {name: new[name] for name, given in _said(evidence) if given}
    changes["created_at"] = case(
        (new.created_at < MemoryEntry.created_at, new.created_at), else_=MemoryEntry.created_at
    )
    changes["embedding"] = case((new.encoder == "", col(MemoryEntry.embedding)), else_=new.embedding)
    changes["revision"] = later_revision(new.revision)
    newer = _takes_precedence(new.final, new.updated_at, new.score)
    statement = insert.on_conflict_do_update(index_elements=["key"], set_=changes, where=newer)
    # A conflict that is not updated returns no row; the drivers' row counts differ here.
    return session.execute(statement.returning(col(MemoryEntry.id))).first() is not None


def save_score(session: Session, key: str, *, score: float, final: bool, at: datetime) -> bool:
    """Replace the score of a row, unless a final one would become provisional, and return whether it did.

    Call it one after the other, with the score of all outcomes that are known: the last call stands, whichever of them
    is the latest. `at` is the time of that one.
    """
    if not 0.0 <= score <= 1.0:
        raise ValueError(f"the score is {score}; it must be within [0, 1]")
    statement = (
        update(MemoryEntry)
        .where(col(MemoryEntry.key) == key, or_(literal(final), col(MemoryEntry.final).is_(False)))
        .values(score=score, final=final, updated_at=at, revision=later_revision(next_revision()))
    )
    return _rows_changed(session, statement) > 0


def rename_repository(session: Session, before: str, after: str, task_keys: Any) -> None:
    """Give what is remembered of these tasks, a subquery of their keys, in repository `before` its present name."""
    session.execute(
        update(MemoryEntry)
        .where(col(MemoryEntry.repository) == before, col(MemoryEntry.task_key).in_(task_keys))
        .values(repository=after, revision=later_revision(next_revision()))
    )


def trim(session: Session, capacity: int) -> int:
    """Delete the rows of the oldest attempts beyond `capacity`, as `routing.memory` does, and return how many."""
    row = MemoryEntry
    beyond = session.exec(select(sqlalchemy.func.count()).select_from(row)).one() - capacity
    if beyond <= 0:
        return 0
    oldest = select(row.id).order_by(col(row.created_at), col(row.key)).limit(beyond)
    return _rows_changed(session, delete(row).where(col(row.id).in_(oldest)))


class EvidenceFeed:
    """Brings what other processes wrote into one router."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._seen_to = -1
        self._applied: dict[str, int] = {}
        """Revision by key, of rows within the overlap."""
        self._lock = threading.Lock()

    def catch_up(self, router: _Learner) -> int:
        """Apply every row that is new or changed since the last call and return how many. Safe to repeat."""
        with self._lock, _without_garbage_collection():
            return self._catch_up(router)

    def _catch_up(self, router: _Learner) -> int:
        horizon = self._seen_to - OVERLAP_US
        count = 0
        after = (horizon, 0)
        while rows := self._page(after):
            for row in rows:
                after = (row.revision, row.id or 0)
                if self._applied.get(row.key) == row.revision:
                    continue
                self._apply(router, row)
                self._applied[row.key] = row.revision
                self._seen_to = max(self._seen_to, row.revision)
                count += 1
            if len(rows) < _PAGE:
                break
        horizon = self._seen_to - OVERLAP_US
        self._applied = {key: revision for key, revision in self._applied.items() if revision > horizon}
        return count

    def _apply(self, router: _Learner, row: Row[Any]) -> None:
        try:
            router.observe(_evidence(row))
        except (RoutingError, ValueError) as error:
            # One damaged row must not keep a process from everything that comes after it.
            _log.error("memory_entry_skipped", key=row.key, error=str(error))

    def _page(self, after: tuple[int, int]) -> list[Row[Any]]:
        revision, row_id = col(MemoryEntry.revision), col(MemoryEntry.id)
        query = (
            sqlalchemy.select(*_READ)
            .where(or_(revision > after[0], and_(revision == after[0], row_id > after[1])))
            .order_by(revision, row_id)
            .limit(_PAGE)
        )
        with self._database.session() as session:
            return list(session.execute(query))


@contextlib.contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """All that is read stays: to look through more and more of it for garbage is a fifth of the time of a start."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _takes_precedence(final: Any, at: Any, score: Any) -> ColumnElement[bool]:
    """The order of `routing.evidence.precedence` in SQL, without its revisions; what is equal may be written again."""
    row = MemoryEntry
    same_finality = col(row.final) == final
    return or_(
        and_(col(row.final).is_(False), final),
        and_(same_finality, col(row.updated_at) < at),
        and_(same_finality, col(row.updated_at) == at, col(row.score) >= score),
    )


def later_revision(revision: Any) -> ColumnElement[int]:
    """Return, in SQL, a row's next revision: the one that is given, or just above the row's own."""
    old = col(MemoryEntry.revision)
    return case((old >= revision, old + 1), else_=revision)


def next_revision() -> ColumnElement[int]:
    """Return, in SQL, the writer's clock, or the highest revision that there is where the clock is behind it."""
    now, highest = new_revision(), select(sqlalchemy.func.max(aliased(MemoryEntry).revision)).scalar_subquery()
    return case((highest > now, highest), else_=literal(now, sqlalchemy.BigInteger))


def new_revision() -> int:
    """Return the writer's clock in microseconds."""
    return time.time_ns() // 1000


def _rows_changed(session: Session, statement: Any) -> int:
    return cast("CursorResult[Any]", session.execute(statement)).rowcount


def _columns(evidence: Evidence) -> dict[str, Any]:
    return {
        "key": evidence.key,
        "task_key": evidence.task_key,
        "repository": evidence.repository,
        "dimension": str(evidence.dimension),
        "language": evidence.language,
        "title": evidence.title,
        "link": evidence.link,
        "text": evidence.text,
        "model": evidence.model,
        "score": evidence.score,
        "cost_usd": evidence.cost_usd,
        "final": evidence.final,
        "verifier_score": evidence.verifier_score if evidence.final else evidence.score,
        **dict(_said(evidence)),
        "created_at": evidence.made_at,
        "updated_at": evidence.at,
    }


def _said(evidence: Evidence) -> list[tuple[str, Any]]:
    return [
        ("views", dict(evidence.views)),
        ("namings", dict(evidence.namings)),
        ("traits", list(evidence.traits)),
    ]


def packed_vector(vector: Vector) -> bytes:
    """Return a vector as its column holds it: little-endian float32."""
    return np.ascontiguousarray(vector, dtype=_FLOAT).tobytes()


def _evidence(row: Row[Any]) -> Evidence:
    """Return a row as evidence. Its text stays behind: a router that has the vector needs no words."""
    embedding = None
    if row.embedding:
        if len(row.embedding) % _FLOAT.itemsize:
            raise EncoderError(f"memory entry '{row.key}': its embedding of {len(row.embedding)} bytes is damaged.")
        embedding = np.frombuffer(row.embedding, dtype=_FLOAT).astype(np.float32)
    return Evidence(
        key=row.key,
        task_key=row.task_key,
        dimension=Dimension(row.dimension) if row.dimension else Dimension.AGENTIC_PROGRAMMING,
        model=row.model,
        score=row.score,
        cost_usd=row.cost_usd,
        final=row.final,
        at=row.updated_at,
        attempted_at=row.created_at,
        revision=row.revision,
        verifier_score=row.verifier_score,
        views=row.views,
        namings=row.namings,
        traits=tuple(row.traits),
        text="",
        repository=row.repository,
        language=row.language,
        title=row.title,
        link=row.link,
        embedding=embedding,
        encoder=row.encoder,
    )

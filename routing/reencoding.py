"""Embeds rows of the database's evidence that have no vector of this encoder, without locking them meanwhile."""

from collections.abc import Collection, Sequence
from typing import cast

import structlog
from sqlalchemy import or_, update
from sqlmodel import col, select
from sqlmodel.sql.expression import SelectOfScalar

from routing.encoders import embedding_text
from routing.errors import EncoderError
from routing.evidence_store import later_revision, next_revision, packed_vector
from routing.types import Encoder, Vector
from store.database import Database
from store.tables import MemoryEntry

_log = structlog.get_logger(__name__)


def waits_for_encoder(database: Database, encoder: Encoder, *, since: int = -1, without: Collection[int] = ()) -> bool:
    """Return whether `reencode` would find a row."""
    with database.reading() as session:
        return session.exec(_unencoded(encoder, since, without).limit(1)).first() is not None


def reencode(
    database: Database, encoder: Encoder, batch: int = 64, *, since: int = -1, refused: set[int] | None = None
) -> int:
    """Embed up to `batch` rows of another encoder again and return how many were looked at; 0: all are done.

    Only rows of a revision above `since` are looked for. Rows whose text the encoder refuses are added to `refused`, by
    their ids, and those that are in it are passed over.

    The texts are embedded between two transactions: nothing is locked while a model works. A row whose text changed in
    the meantime is left for the next call.

    Raises:
        EncoderError: the encoder cannot be used.
    """
    refused = set() if refused is None else refused
    with database.reading() as session:
        # The newest are the likeliest to be asked for.
        query = _unencoded(encoder, since, refused).order_by(col(MemoryEntry.id).desc()).limit(batch)
        rows = session.exec(query).all()
    if not rows:
        return 0
    vectors = _encoded(encoder, [embedding_text(title, text) for _, _, title, text in rows])
    with database.session() as session:
        for (row_id, revision, _, _), vector in zip(rows, vectors, strict=True):
            if vector is None:
                refused.add(cast("int", row_id))
                continue
            session.execute(
                update(MemoryEntry)
                .where(col(MemoryEntry.id) == row_id, col(MemoryEntry.revision) == revision)
                .values(encoder=encoder.name, embedding=packed_vector(vector), revision=later_revision(next_revision()))
            )
    return len(rows)


def _unencoded(
    encoder: Encoder, since: int, without: Collection[int]
) -> SelectOfScalar[tuple[int | None, int, str, str]]:
    query = select(MemoryEntry.id, MemoryEntry.revision, MemoryEntry.title, MemoryEntry.text).where(
        col(MemoryEntry.revision) > since,
        col(MemoryEntry.encoder) != encoder.name,
        or_(col(MemoryEntry.text) != "", col(MemoryEntry.title) != ""),
        col(MemoryEntry.id).not_in(without),
    )
    return cast("SelectOfScalar[tuple[int | None, int, str, str]]", query)


def _encoded(encoder: Encoder, texts: Sequence[str]) -> Sequence[Vector | None]:
    """Return the vector of each text, None where the encoder refuses it.

    Raises:
        EncoderError: it takes no text at all now.
    """
    try:
        return list(encoder.encode(texts))
    except EncoderError:
        encoder.encode(["Does it work?"])  # else none of the texts would be to blame
    return [_encoded_alone(encoder, text) for text in texts]


def _encoded_alone(encoder: Encoder, text: str) -> Vector | None:
    try:
        vector: Vector = encoder.encode([text])[0]
    except EncoderError as error:
        _log.warning("memory_entry_not_embedded", error=str(error))
        return None
    return vector

"""Workers embed what waits in the memory, each row by one of them."""

from collections.abc import Callable, Sequence

from sqlmodel import select

from routing.encoders.hashing import HashingEncoder
from routing.errors import EncoderError
from routing.evidence_store import save
from routing.types import Vector
from store.database import Database
from store.tables import MemoryEntry
from tests.support.routing import make_evidence
from workers.reencoding import Reencoding


class Watched(HashingEncoder):
    """Does something while it works, and remembers what it was given."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        super().__init__()
        self.given: list[str] = []
        self._meanwhile = meanwhile

    def encode(self, texts: Sequence[str]) -> Vector:
        self.given += texts
        self._meanwhile()
        return super().encode(texts)


def add(database: Database, *texts: str) -> None:
    with database.session() as session:
        for text in texts:
            save(session, make_evidence(text, "small", 1.0, text=text), None)


def encoders(database: Database) -> list[str]:
    with database.session() as session:
        return list(session.exec(select(MemoryEntry.encoder)).all())


def test_two_workers_do_not_embed_the_same_rows(database: Database) -> None:
    add(database, "one", "two")
    second = Watched(lambda: None)
    first = Watched(Reencoding(database, second))
    Reencoding(database, first)()
    assert sorted(first.given) == ["one", "two"]
    assert second.given == []
    add(database, "three")
    Reencoding(database, second)()
    assert second.given == ["three"], "the turn ends with the batch"
    assert encoders(database) == [second.name] * 3


def test_a_row_that_is_refused_is_tried_again_after_a_start_only(database: Database) -> None:
    add(database, "fine", "refused")
    given: list[str] = []

    class Picky(HashingEncoder):
        def encode(self, texts: Sequence[str]) -> Vector:
            given.extend(texts)
            if "refused" in texts:
                raise EncoderError("This text is too long.")
            return super().encode(texts)

    reencoding = Reencoding(database, Picky())
    reencoding()
    assert sorted(encoders(database)) == ["", Picky().name]
    given.clear()
    reencoding()
    assert given == []
    Reencoding(database, Picky())()
    assert "refused" in given

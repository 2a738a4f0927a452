"""The evidence in a real database, SQLite and Postgres, and routers that catch up with it."""

import random
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from sqlalchemy import update
from sqlmodel import col, select

from routing import Evidence, Router
from routing.contexts import traits
from routing.encoders.hashing import HashingEncoder
from routing.errors import EncoderError
from routing.evidence_store import EvidenceFeed, save, save_score, trim
from routing.reencoding import reencode, waits_for_encoder
from routing.types import Vector
from store.database import Database
from store.tables import MemoryEntry
from tests.support.issue_texts import SUBJECTS
from tests.support.routing import START, make_evidence, make_pool

FIRST, SECOND, _ = SUBJECTS["dates"]
ENCODER = HashingEncoder()


class OtherEncoder(HashingEncoder):
    """Another encoder in name and in its vectors."""

    name = "other:1"

    def encode(self, texts: Sequence[str]) -> Vector:
        rows: Vector = np.ascontiguousarray(np.roll(super().encode(texts), 7, axis=1))
        return rows


def stored(database: Database, *evidence: Evidence) -> list[bool]:
    results = []
    for one in evidence:
        with database.session() as session:
            results.append(save(session, one, ENCODER))
    return results


def rows(database: Database) -> list[MemoryEntry]:
    with database.session() as session:
        return list(session.exec(select(MemoryEntry).order_by(col(MemoryEntry.id))))


def test_a_final_score_replaces_the_provisional_one_and_never_the_other_way(database: Database) -> None:
    provisional = make_evidence("attempt:1", "small", 0.6, text=FIRST, title="Dates", repository="o/r")
    outcome = make_evidence("attempt:1", "small", 1.0, final=True, minutes=60)

    assert stored(database, provisional, outcome, provisional) == [True, True, False]

    (row,) = rows(database)
    assert (row.score, row.final, row.updated_at) == (1.0, True, START + timedelta(minutes=60))
    assert row.created_at == START
    # The outcome came without the task's words and did not wipe them out.
    assert (row.text, row.title, row.repository, row.encoder) == (FIRST, "Dates", "o/r", ENCODER.name)
    assert row.embedding is not None


def test_any_order_of_writing_ends_with_the_same_row(database: Database) -> None:
    history = [
        make_evidence("attempt:1", "small", 0.6, text=FIRST),
        make_evidence("attempt:1", "small", 0.7, text=FIRST, minutes=1),
        make_evidence("attempt:1", "small", 1.0, text=FIRST, final=True, minutes=2),
        make_evidence("attempt:1", "small", 0.8, text=FIRST, final=True, minutes=2),
    ]
    ends = set()
    for seed in range(8):
        order = history * 2
        random.Random(seed).shuffle(order)
        stored(database, *(replace(one, key=f"attempt:{seed}") for one in order))
    for row in rows(database):
        ends.add((row.score, row.final, row.updated_at))

    assert ends == {(0.8, True, START + timedelta(minutes=2))}


def test_a_score_alone_can_be_replaced_by_its_key(database: Database) -> None:
    stored(database, make_evidence("attempt:1", "small", 0.6, text=FIRST))
    with database.session() as session:
        assert save_score(session, "attempt:1", score=0.0, final=True, at=START + timedelta(hours=1))
        assert not save_score(session, "attempt:1", score=0.9, final=False, at=START + timedelta(hours=2))
        assert not save_score(session, "attempt:2", score=0.9, final=True, at=START)
        with pytest.raises(ValueError, match="within"):
            save_score(session, "attempt:1", score=1.5, final=True, at=START)

    assert [(row.score, row.final) for row in rows(database)] == [(0.0, True)]


def test_a_second_process_decides_as_the_first_after_catching_up(database: Database) -> None:
    first, second = Router(make_pool()), Router(make_pool())
    feed = EvidenceFeed(database)
    for n, (model, score) in enumerate([("small", 0.0), ("medium", 1.0), ("small", 0.2), ("large", 0.9)]):
        evidence = first.observe(make_evidence(f"attempt:{n}", model, score, text=SECOND, minutes=n))
        stored(database, evidence)
    assert feed.catch_up(second) == 4
    assert feed.catch_up(second) == 0

    outcome = first.observe(make_evidence("attempt:1", "medium", 0.0, final=True, minutes=60))
    stored(database, outcome)

    assert feed.catch_up(second) == 1
    task = first.task("t", FIRST)
    assert second.decide(task, explore=False) == first.decide(task, explore=False)


def test_a_second_process_knows_in_which_order_a_tasks_attempts_were_made(database: Database) -> None:
    first, second = Router(make_pool()), Router(make_pool())
    for evidence in (
        make_evidence("attempt:1", "small", 0.4, task_key="t"),
        make_evidence("attempt:2", "large", 0.0, task_key="t", minutes=5),
        make_evidence("attempt:1", "small", 0.0, task_key="t", minutes=50, final=True),
    ):
        stored(database, first.observe(evidence))
    EvidenceFeed(database).catch_up(second)

    assert [row.created_at for row in rows(database)] == [START, START + timedelta(minutes=5)]
    for one in (first, second):
        told = one.observe(make_evidence("attempt:1", "small", 0.0, task_key="t", minutes=60, final=True))
        assert told.made_at == START
    task = first.task("other", SECOND)
    assert second.decide(task, explore=False) == first.decide(task, explore=False)


def test_a_row_committed_late_with_an_older_revision_is_not_missed(database: Database) -> None:
    router, feed = Router(make_pool()), EvidenceFeed(database)
    stored(database, make_evidence("a", "small", 1.0, text=FIRST))
    assert feed.catch_up(router) == 1
    stored(database, make_evidence("b", "small", 1.0, text=FIRST))
    (seen, late) = rows(database)
    with database.session() as session:
        session.execute(
            update(MemoryEntry).where(col(MemoryEntry.id) == late.id).values(revision=seen.revision - 60_000_000)
        )

    assert feed.catch_up(router) == 1
    assert len(router) == 2


def test_every_write_raises_the_revision_even_when_the_clock_stands(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time_ns", lambda: 1_000_000)
    seen = []
    for minute in range(3):
        stored(database, make_evidence("a", "small", 0.5, text=FIRST, minutes=minute))
        seen.append(rows(database)[0].revision)

    assert seen == sorted(set(seen))


def test_what_is_learnt_after_a_clock_went_wrong_for_a_moment_is_not_missed(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    router, feed = Router(make_pool()), EvidenceFeed(database)
    stored(database, make_evidence("a", "small", 0.5, text=FIRST), make_evidence("b", "small", 0.5, text=FIRST))
    tomorrow = time.time_ns() + 86_400 * 10**9
    with monkeypatch.context() as wrong:
        wrong.setattr("time.time_ns", lambda: tomorrow)
        stored(database, make_evidence("c", "small", 0.5, text=SECOND))
    assert feed.catch_up(router) == 3
    with database.session() as session:
        assert save_score(session, "a", score=1.0, final=True, at=START)
    stored(database, make_evidence("d", "small", 0.5, text=FIRST))
    assert reencode(database, OtherEncoder(), batch=1) == 1
    assert feed.catch_up(router) == 2
    assert feed.catch_up(router) == 0


def test_more_rows_than_a_page_arrive_all(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("routing.evidence_store._PAGE", 3)
    monkeypatch.setattr("time.time_ns", lambda: 5_000_000)  # all rows share one revision
    stored(database, *(make_evidence(f"k{n}", "small", 1.0, text=FIRST) for n in range(10)))
    router = Router(make_pool())

    assert EvidenceFeed(database).catch_up(router) == 10
    assert len(router) == 10


def test_the_oldest_rows_leave_first(database: Database) -> None:
    stored(database, *(make_evidence(f"k{n}", "small", 1.0) for n in range(5)))
    stored(database, make_evidence("k0", "small", 0.0, final=True, minutes=9))
    with database.session() as session:
        assert trim(session, 3) == 2
        assert trim(session, 3) == 0

    assert [row.key for row in rows(database)] == ["k2", "k3", "k4"]


def test_the_rows_of_old_attempts_leave_first_however_late_they_come(database: Database) -> None:
    late = make_evidence("late", "small", 1.0, minutes=9, final=True)
    stored(database, *(make_evidence(f"k{n}", "small", 1.0, minutes=n + 1) for n in (2, 0, 1)))
    stored(database, replace(late, attempted_at=START))
    with database.session() as session:
        assert trim(session, 2) == 2

    assert {row.key for row in rows(database)} == {"k1", "k2"}


def test_another_encoder_sees_nothing_until_the_rows_are_embedded_again(database: Database) -> None:
    stored(database, *(make_evidence(f"k{n}", "small", 1.0, text=FIRST, title="Dates") for n in range(5)))
    stored(database, make_evidence("wordless", "small", 1.0))
    other = OtherEncoder()
    router, feed = Router(make_pool(), encoder=other), EvidenceFeed(database)
    assert feed.catch_up(router) == 6
    assert router.decide(router.task("t", FIRST)).neighbours == ()

    assert [reencode(database, other, batch=3) for _ in range(3)] == [3, 2, 0]

    assert feed.catch_up(router) == 5
    assert len(router.decide(router.task("t", FIRST)).neighbours) == 5


def test_a_row_that_the_encoder_refuses_keeps_no_other_from_being_embedded(database: Database) -> None:
    class Picky(OtherEncoder):
        refused = SECOND

        def encode(self, texts: Sequence[str]) -> Vector:
            if any(self.refused in text for text in texts):
                raise EncoderError("This text is too long.")
            return super().encode(texts)

    stored(database, *(make_evidence(f"k{n}", "small", 1.0, text=FIRST) for n in range(3)))
    stored(database, make_evidence("newest", "small", 1.0, text=SECOND))
    picky, refused = Picky(), set[int]()
    assert [reencode(database, picky, batch=2, refused=refused) for _ in range(3)] == [2, 2, 0]
    assert [row.encoder for row in rows(database)] == [*[picky.name] * 3, ENCODER.name]
    assert not waits_for_encoder(database, picky, without=refused)


def test_an_encoder_that_is_away_refuses_no_row(database: Database) -> None:
    class Away(OtherEncoder):
        def encode(self, texts: Sequence[str]) -> Vector:
            raise EncoderError("The API cannot be used.")

    stored(database, make_evidence("k", "small", 1.0, text=FIRST))
    refused = set[int]()
    with pytest.raises(EncoderError):
        reencode(database, Away(), refused=refused)
    assert refused == set()


def test_whoever_meets_a_row_before_it_is_embedded_learns_the_same_in_the_end(database: Database) -> None:
    early, late = Router(make_pool()), Router(make_pool())
    feed = EvidenceFeed(database)
    with database.session() as session:
        for n, (model, score, usd) in enumerate([("small", 0.0, 0.4), ("medium", 1.0, 0.1), ("large", 1.0, 0.9)]):
            outcome = make_evidence(
                f"attempt:{n}", model, score, final=True, cost_usd=usd, text=FIRST, title="Dates", traits=traits(FIRST)
            )
            save(session, outcome, None)
    assert feed.catch_up(early) == 3
    assert early.decide(early.task("t", FIRST), explore=False).neighbours == (), "nothing is embedded twice"
    assert reencode(database, early.encoder) == 3
    assert feed.catch_up(early) == EvidenceFeed(database).catch_up(late) == 3
    for text in (FIRST, SECOND):
        task = early.task("t", text)
        assert early.decide(task, explore=False) == late.decide(task, explore=False)


def test_a_damaged_row_is_passed_over(database: Database) -> None:
    stored(database, make_evidence("bad", "small", 1.0, text=FIRST), make_evidence("good", "small", 1.0, text=FIRST))
    with database.session() as session:
        session.execute(update(MemoryEntry).where(col(MemoryEntry.key) == "bad").values(embedding=b"123"))
    router = Router(make_pool())
    EvidenceFeed(database).catch_up(router)

    assert len(router) == 1


def test_writers_at_once_leave_one_row_with_the_final_score(database: Database) -> None:
    history = [
        make_evidence("a", "small", 0.6, text=FIRST),
        make_evidence("a", "small", 1.0, text=FIRST, final=True, minutes=1),
        make_evidence("a", "small", 0.0, text=FIRST, final=True, minutes=2),
    ]
    threads = [threading.Thread(target=stored, args=(database, one)) for one in history * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert [(row.score, row.final) for row in rows(database)] == [(0.0, True)]

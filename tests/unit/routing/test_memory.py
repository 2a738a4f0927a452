"""The memory: what it finds, keeps and lets go."""

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routing.encoders.hashing import HashingEncoder
from routing.errors import EncoderError
from routing.memory import VectorMemory
from routing.types import Evidence, Vector
from tests.support.routing import make_evidence

ENCODER = HashingEncoder()


def vector(text: str) -> Vector:
    row: Vector = ENCODER.encode([text])[0]
    return row


def entry(key: str, text: str, score: float = 1.0, *, encoder: str = ENCODER.name, minutes: float = 0) -> Evidence:
    return make_evidence(key, "small", score, embedding=vector(text), encoder=encoder, minutes=minutes)


def test_the_nearest_come_first_and_the_unlike_not_at_all() -> None:
    memory = VectorMemory(ENCODER)
    memory.put(entry("a", "legend overlaps the axes"))
    memory.put(entry("b", "parse_date crashes on empty strings"))
    memory.put(entry("c", "parse_date crashes on week dates"))

    found = memory.neighbours(vector("parse_date crashes on week dates with a zone"))

    assert [n.key for n in found] == ["c", "b"]
    assert found[0].similarity > found[1].similarity >= ENCODER.threshold


def test_ten_neighbours_at_most() -> None:
    memory = VectorMemory(ENCODER)
    for n in range(15):
        memory.put(entry(f"k{n}", "parse_date crashes"))

    assert len(memory.neighbours(vector("parse_date crashes"))) == 10


def test_the_tasks_own_attempts_are_no_neighbours_and_take_no_places() -> None:
    memory = VectorMemory(ENCODER)
    for n in range(13):
        memory.put(replace(entry(f"k{n:02}", "parse_date crashes"), task_key="own" if n < 3 else "other"))
    others = {f"k{n:02}" for n in range(3, 13)}

    assert {n.key for n in memory.neighbours(vector("parse_date crashes"), without_task="own")} == others
    memory.put(replace(entry("k05", "parse_date crashes", minutes=1), task_key="own"))
    memory.remove("k00")
    found = memory.neighbours(vector("parse_date crashes"), without_task="own")
    assert {n.key for n in found} == others - {"k05"}


@pytest.mark.parametrize(
    "texts", [["parse_date crashes"], [f"parse_date crashes {word}" for word in ("zones", "weeks")]]
)
def test_of_the_equally_near_the_newest_are_taken_whatever_the_order_of_arrival(texts: list[str]) -> None:
    entries = [entry(f"k{n:02}", texts[n % len(texts)], minutes=n // 2) for n in range(60)]
    found = []
    for order in (entries, entries[::-1], random.Random(1).sample(entries, 60)):
        memory = VectorMemory(ENCODER)
        for one in order:
            memory.put(one)
        found.append(memory.neighbours(vector("parse_date crashes")))

    assert [n.key for n in found[0]] == ["k58", "k59", "k56", "k57", "k54", "k55", "k52", "k53", "k50", "k51"]
    assert found[0] == found[1] == found[2]


def test_the_nearest_come_before_the_newest() -> None:
    memory = VectorMemory(ENCODER)
    memory.put(entry("near", "parse_date crashes on week dates"))
    for n in range(20):
        memory.put(entry(f"far{n:02}", "parse_date crashes", minutes=n + 1))

    assert [n.key for n in memory.neighbours(vector("parse_date crashes on week dates"), 3)] == [
        "near",
        "far19",
        "far18",
    ]


def test_an_outcome_makes_an_entry_newer() -> None:
    memory = VectorMemory(ENCODER)
    for n in range(12):
        memory.put(entry(f"k{n:02}", "parse_date crashes", minutes=n))
    memory.put(make_evidence("k00", "small", 0.0, final=True, minutes=20))  # without the text, as outcomes come

    assert [n.key for n in memory.neighbours(vector("parse_date crashes"), 3)] == ["k00", "k11", "k10"]


def test_the_oldest_attempt_leaves_and_a_late_outcome_makes_it_no_newer() -> None:
    memory = VectorMemory(ENCODER, capacity=2)
    first = entry("a", "legend")
    memory.put(first)
    memory.put(entry("b", "regex", minutes=1))
    assert memory.put(replace(entry("a", "colorbar", minutes=5), attempted_at=first.at)) == []
    assert memory.put(entry("c", "cookies", minutes=2)) == ["a"]

    assert "a" not in memory
    assert len(memory) == 2
    assert [n.key for n in memory.neighbours(vector("cookies"))] == ["c"]
    assert memory.neighbours(vector("colorbar")) == []


def test_what_is_older_than_all_that_a_full_memory_keeps_does_not_come_in() -> None:
    memory = VectorMemory(ENCODER, capacity=2)
    for minute, key in ((2, "b"), (3, "c"), (1, "a")):
        left = memory.put(entry(key, "parse_date crashes", minutes=minute))

    assert left == ["a"]
    assert {n.key for n in memory.neighbours(vector("parse_date crashes"))} == {"b", "c"}


def test_an_outcome_replaces_the_score_and_an_old_score_does_not_come_back() -> None:
    memory = VectorMemory(ENCODER)
    memory.put(entry("a", "parse_date crashes", 0.6))
    memory.put(make_evidence("a", "small", 0.0, final=True, minutes=5))  # without the text, as outcomes come
    memory.put(entry("a", "parse_date crashes", 0.6))

    (found,) = memory.neighbours(vector("parse_date crashes"))
    assert (found.score, found.final) == (0.0, True)


def test_entries_of_another_encoder_are_kept_and_never_compared() -> None:
    memory = VectorMemory(ENCODER)
    memory.put(entry("a", "parse_date crashes", encoder="minilm"))
    memory.put(make_evidence("b", "small", 1.0, embedding=np.ones(3, dtype=np.float32), encoder="other"))

    assert len(memory) == 2
    assert memory.neighbours(vector("parse_date crashes")) == []


def test_a_vector_of_the_wrong_shape_or_length_is_refused() -> None:
    memory = VectorMemory(ENCODER)
    with pytest.raises(EncoderError, match=r"shape \(3,\) does not fit the encoder 'hashing:1'"):
        memory.put(make_evidence("a", "small", 1.0, embedding=np.ones(3, dtype=np.float32), encoder=ENCODER.name))
    with pytest.raises(EncoderError, match="length 2"):
        memory.put(make_evidence("a", "small", 1.0, embedding=2 * vector("x crashes"), encoder=ENCODER.name))
    assert len(memory) == 0
    memory.put(entry("a", "crashes"))
    with pytest.raises(EncoderError, match="does not fit"):
        memory.neighbours(np.ones(3, dtype=np.float32))


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.sampled_from(["legend", "regex", "cookies"]), st.booleans()), max_size=15
    )
)
def test_the_index_holds_exactly_the_entries_that_stand(actions: list[tuple[str, str, bool]]) -> None:
    memory = VectorMemory(ENCODER)
    standing: dict[str, str] = {}
    for minute, (key, text, remove) in enumerate(actions):
        if remove:
            assert memory.remove(key) == (standing.pop(key, None) is not None)
        else:
            memory.put(entry(key, text, minutes=minute))
            standing[key] = text
    for text in ("legend", "regex", "cookies"):
        assert {n.key for n in memory.neighbours(vector(text))} == {k for k, t in standing.items() if t == text}

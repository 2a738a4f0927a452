"""What a router knows does not depend on the order in which it hears of attempts, nor on how often: all of it together.

Each voter is held to this by itself in `test_voters`; here what the router keeps beside them is too: costs, how far the
verifier is to be trusted, the voters' records, what namings are worth, the memory.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from routing import RewardWeights, Router
from routing.types import Dimension, Evidence, Voter
from routing.voters import DEFAULT_WEIGHTS, FACTORIES
from tests.support.routing import START, FixedVoter, make_evidence, make_pool

TEXTS = ("", "parse_date crashes on empty strings", "parse_date raises on None", "the legend overlaps the plot's axes")
UNKNOWN: dict[str, Any] = {"attempted_at": None, "views": {}, "namings": {}, "text": ""}
KINDS = (Dimension.BUG_FIXING, Dimension.ALGORITHM)


@st.composite
def attempts(draw: st.DrawFn, key: str) -> list[Evidence]:
    """All that is heard of one attempt: verdicts, then outcomes, each with as much of the rest as its source knows."""
    made = draw(st.integers(0, 3))
    verdicts = draw(st.lists(st.sampled_from([0.0, 0.3, 0.96, 1.0]), max_size=2))
    outcomes = draw(st.lists(st.sampled_from([0.0, 0.5, 1.0]), max_size=2))
    view, share = draw(st.sampled_from([0.0, 0.4, 1.0])), draw(st.sampled_from([-0.5, 0.5]))
    whole = Evidence(
        key=key,
        task_key=draw(st.sampled_from(["t1", "t2", "t3"])),
        dimension=draw(st.sampled_from(KINDS)),
        model=draw(st.sampled_from(["small", "medium", "large", "left the pool"])),
        score=0.0,
        cost_usd=draw(st.sampled_from([0.0, 0.01, 0.5, 3.0])),
        final=False,
        at=START + timedelta(minutes=made),
        attempted_at=START + timedelta(minutes=made),
        views={"bandit": view, "dimension_best": 0.5},
        namings={"own": share},
        text=draw(st.sampled_from(TEXTS)),
    )
    heard = []
    for number, score in enumerate((*verdicts, *outcomes)):
        final = number >= len(verdicts)
        wait = 0 if number == 0 and not final else draw(st.integers(0, 4))
        left_out = {name: UNKNOWN[name] for name in draw(st.sets(st.sampled_from(sorted(UNKNOWN))))}
        said = draw(st.sampled_from([None, verdicts[0]])) if final and verdicts else None
        one = replace(whole, score=score, final=final, at=whole.at + timedelta(minutes=wait), verifier_score=said)
        heard.append(replace(one, **left_out))
    return heard


histories = st.tuples(*(attempts(key) for key in "abcd")).map(lambda found: [one for heard in found for one in heard])


def naming(_: RewardWeights) -> Voter:
    """A voter without beliefs: what its namings are worth is learnt too."""
    return FixedVoter("own", {"small": 0.8, "large": 0.2})


def taught(evidence: Sequence[Evidence]) -> Router:
    weights = {**DEFAULT_WEIGHTS, "own": 1.0}
    router = Router(make_pool(), voter_weights=weights, factories={**FACTORIES, "own": naming}, seed=1)
    for one in evidence:
        router.observe(one)
    return router


def known(router: Router) -> list[object]:
    """Return all that a router answers to some tasks."""
    answers: list[object] = []
    for kind in KINDS:
        task = replace(router.task("asked", TEXTS[1]), dimension=kind)
        decision = router.decide(task, explore=False)
        answers += [decision, router.escalate(task, decision, {decision.chosen: 0.0})]
    return answers


@settings(deadline=None, max_examples=100)
@given(history=histories, random=st.randoms(use_true_random=False))
def test_order_and_repetition_change_no_answer_of_the_router(history: list[Evidence], random: object) -> None:
    shuffled = history * 2
    random.shuffle(shuffled)  # type: ignore[attr-defined]

    assert known(taught(shuffled)) == known(taught(history))


@settings(deadline=None, max_examples=50)
@given(history=histories)
def test_what_is_forgotten_leaves_no_trace_in_the_router(history: list[Evidence]) -> None:
    router = taught(history)
    for key in {one.key for one in history}:
        router.forget(key)

    assert known(router) == known(taught([]))


def test_an_outcome_that_comes_between_two_verdicts_is_held_against_the_last_one() -> None:
    first = make_evidence("a", "small", 0.96)
    again = make_evidence("a", "small", 0.2, minutes=1)
    outcome = make_evidence("a", "small", 0.0, final=True, minutes=2)

    assert known(taught([first, outcome, again])) == known(taught([first, again, outcome]))

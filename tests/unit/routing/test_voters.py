"""The voters: what they make of evidence, in whatever order it comes."""

import random
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routing.errors import RoutingError
from routing.failures import PRIOR_SPREAD
from routing.router import Router
from routing.types import Dimension, Evidence, Neighbour, Voter
from routing.voters import FACTORIES, VoterError, make_voters
from routing.voters.bandit import Bandit
from routing.voters.dimension_best import DimensionBest
from routing.voters.memory_knn import MemoryKnn
from tests.support.routing import START, FixedMemory, make_evidence, make_pool, make_task

EMBEDDING = np.ones(4, dtype=np.float32) / 2

evidence_lists = st.lists(
    st.builds(
        lambda key, task, model, dimension, score, cost, final, minutes: Evidence(
            key, task, dimension, model, score, cost, final, START + timedelta(minutes=minutes)
        ),
        st.sampled_from("abcdef"),
        st.sampled_from(["t1", "t2", "t3"]),
        st.sampled_from(["small", "medium", "large", "gone"]),
        st.sampled_from([Dimension.BUG_FIXING, Dimension.ALGORITHM]),
        st.floats(0, 1),
        st.floats(0, 5),
        st.booleans(),
        st.integers(0, 3),
    ),
    max_size=12,
)


def taught(voter: Voter, *evidence: Evidence) -> Voter:
    for one in evidence:
        voter.learn(one)
    return voter


@pytest.mark.parametrize("name", FACTORIES)
@settings(deadline=None, max_examples=60)
@given(evidence=evidence_lists, random=st.randoms(use_true_random=False))
def test_order_and_repetition_of_evidence_leave_the_same_vote(
    name: str, evidence: list[Evidence], random: object
) -> None:
    shuffled = evidence * 2
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    task, pool = make_task(embedding=EMBEDDING), make_pool()

    one = taught(make_voters({name: 1.0})[name], *evidence).vote(task, FixedMemory(), pool)
    other = taught(make_voters({name: 1.0})[name], *shuffled).vote(task, FixedMemory(), pool)

    assert one == other  # exactly, to the last bit
    assert one.abstains or sum(one.shares.values()) == pytest.approx(1.0)


@settings(deadline=None, max_examples=60)
@given(evidence=evidence_lists)
def test_forgetting_a_key_leaves_no_trace(evidence: list[Evidence]) -> None:
    task, pool = make_task(), make_pool()
    for voter in (DimensionBest(), Bandit()):
        before = voter.vote(task, FixedMemory(), pool)
        taught(voter, *evidence)
        for key in "abcdefg":
            voter.forget(key)
        assert voter.vote(task, FixedMemory(), pool) == before


def test_a_provisional_score_never_comes_back_over_a_final_one() -> None:
    merged = make_evidence("a", "small", 1.0, final=True, minutes=0)
    late = make_evidence("a", "small", 0.0, final=False, minutes=9)
    task, pool = make_task(), make_pool()

    assert taught(DimensionBest(), merged, late).vote(task, FixedMemory(), pool) == taught(
        DimensionBest(), merged
    ).vote(task, FixedMemory(), pool)


def test_dimension_best_prefers_what_worked_on_this_kind_of_task() -> None:
    voter = DimensionBest()
    for n in range(8):
        voter.learn(make_evidence(f"s{n}", "small", 1.0))
        voter.learn(make_evidence(f"l{n}", "large", 0.0))
        voter.learn(make_evidence(f"a{n}", "large", 1.0, dimension=Dimension.ALGORITHM))
        voter.learn(make_evidence(f"b{n}", "small", 0.0, dimension=Dimension.ALGORITHM))

    assert "or its price it leads" in DimensionBest().vote(make_task(), FixedMemory(), make_pool()).reason
    bugs = voter.vote(make_task(), FixedMemory(), make_pool())
    algorithms = voter.vote(make_task(dimension=Dimension.ALGORITHM), FixedMemory(), make_pool())

    assert max(bugs.shares, key=lambda m: bugs.shares[m]) == "small"
    assert max(algorithms.shares, key=lambda m: algorithms.shares[m]) == "large"
    assert "after 8 recent attempts" in bugs.reason


def neighbour(model: str, score: float, similarity: float = 0.8, *, final: bool = True) -> Neighbour:
    return Neighbour(f"{model}{score}{similarity}", similarity, model, score, 0.05, final, "title", "")


def test_knn_follows_its_neighbours_and_abstains_without_any() -> None:
    voter, pool = MemoryKnn(), make_pool()
    task = make_task(embedding=EMBEDDING)
    vote = voter.vote(task, FixedMemory([neighbour("small", 0.0), neighbour("medium", 1.0)]), pool)

    assert max(vote.shares, key=lambda m: vote.shares[m]) == "medium"
    assert min(vote.shares, key=lambda m: vote.shares[m]) == "small"
    assert 0 < vote.confidence < 1
    assert voter.vote(task, FixedMemory(), pool).abstains
    silent = voter.vote(make_task("1", "to do it all"), FixedMemory([neighbour("small", 1.0)]), pool)
    assert silent.abstains
    assert silent.reason == "The task's text has no distinctive words to compare."
    assert voter.vote(task, FixedMemory([neighbour("left-the-pool", 1.0)]), pool).abstains


def test_similar_tasks_say_how_hard_it_is_for_models_that_did_not_try_them() -> None:
    voter, pool, task = MemoryKnn(), make_pool(), make_task(embedding=EMBEDDING)
    easy, hard = (
        voter.vote(task, FixedMemory([neighbour("small", score)] * 5), pool).expected_scores["large"]
        for score in (1.0, 0.0)
    )
    assert hard < pool.prior_score("large") - 0.1
    assert easy > pool.prior_score("large") + 0.1


def test_knn_trusts_outcomes_more_than_verifiers() -> None:
    voter, pool, task = MemoryKnn(), make_pool(), make_task(embedding=EMBEDDING)
    sure = voter.vote(task, FixedMemory([neighbour("small", 1.0)]), pool)
    unsure = voter.vote(task, FixedMemory([neighbour("small", 1.0, final=False)]), pool)

    assert sure.expected_scores["small"] > unsure.expected_scores["small"]
    assert sure.confidence > unsure.confidence


def test_the_bandit_grows_sure_of_the_better_model() -> None:
    voter = Bandit()
    for n in range(60):
        voter.learn(make_evidence(f"s{n}", "small", float(n % 4 > 0), final=True))
        voter.learn(make_evidence(f"m{n}", "medium", float(n % 4 == 0), final=True))
        voter.learn(make_evidence(f"l{n}", "large", float(n % 4 == 0), cost_usd=1.0, final=True))

    assert voter.vote(make_task(), FixedMemory(), make_pool()).shares["small"] > 0.97


def test_failures_that_come_together_are_seen_to() -> None:
    hard, mixed = Bandit(), Bandit()
    for n in range(30):
        solvable = float(n % 2)
        for order, model in enumerate(("small", "large")):
            hard.learn(make_evidence(f"h{n}{model}", model, solvable, task_key=f"h{n}", minutes=order))
        mixed.learn(make_evidence(f"x{n}s", "small", 1 - solvable, task_key=f"x{n}", minutes=0))
        mixed.learn(make_evidence(f"x{n}l", "large", solvable, task_key=f"x{n}", minutes=1))

    spreads = [voter.vote(make_task(), FixedMemory(), make_pool()).spread or 0.0 for voter in (hard, mixed)]
    assert spreads[0] > PRIOR_SPREAD > spreads[1]


def test_an_outcome_that_comes_late_makes_the_first_attempt_no_later_one() -> None:
    """Where `small` does not look right `large` tries too; `small` is published all the same, and closed."""
    late, soon, turned_round = (Router(make_pool()) for _ in range(3))
    told = []
    for n in range(60):
        hard = n % 2 == 0
        first = make_evidence(f"s{n}", "small", 0.4, task_key=f"t{n}", minutes=100 * n)
        second = make_evidence(f"l{n}", "large", 0.3 * (n % 6 == 0), task_key=f"t{n}", minutes=100 * n + 5)
        outcome = make_evidence(f"s{n}", "small", float(not hard), task_key=f"t{n}", minutes=100 * n + 50, final=True)
        told += [first, second, outcome] if hard else [first, outcome]
        soon.observe(replace(outcome, attempted_at=first.at))
        turned_round.observe(outcome)
        if hard:
            soon.observe(second)
            turned_round.observe(second)
    random.Random(2).shuffle(told)
    for evidence in told:
        late.observe(evidence)

    task = make_task()
    believed = [
        {vote.voter: vote.expected_scores for vote in router.decide(task, explore=False).votes}
        for router in (late, soon, turned_round)
    ]
    assert believed[0] == believed[1]
    for voter in ("dimension_best", "bandit"):
        assert believed[0][voter]["large"] > believed[2][voter]["large"] + 0.02, "only what was hard was left to it"


@pytest.mark.parametrize("voter", [DimensionBest(), Bandit()])
def test_who_is_tried_last_is_not_blamed_for_hard_tasks(voter: Voter) -> None:
    """`large` solves a third of what `small` could not: over all tasks it is the better one."""
    for n in range(60):
        solved = n % 2 == 0
        voter.learn(make_evidence(f"s{n}", "small", float(solved), task_key=f"t{n}", minutes=2 * n, final=True))
        if not solved:
            voter.learn(
                make_evidence(f"l{n}", "large", float(n % 6 == 1), task_key=f"t{n}", minutes=2 * n + 1, final=True)
            )
    scores = voter.vote(make_task(), FixedMemory(), make_pool()).expected_scores

    assert scores["large"] > 0.42  # its plain mean is a third
    assert scores["small"] == pytest.approx(0.5, abs=0.06)


def test_a_model_that_got_better_is_believed_again() -> None:
    voter = Bandit()
    for n in range(100):
        voter.learn(make_evidence(f"m{n}", "medium", float(n % 2), minutes=n, final=True))
        voter.learn(make_evidence(f"s{n}", "small", float(n % 5 == 0 or n > 70), minutes=n, final=True))

    scores = voter.vote(make_task(), FixedMemory(), make_pool()).expected_scores
    assert scores["small"] > 0.8
    assert scores["medium"] < 0.6


def test_linucb_prefers_what_it_knows_less_of() -> None:
    voters = [Bandit(), Bandit(method="linucb", alpha=2.0)]
    for voter in voters:
        for n in range(60):
            voter.learn(make_evidence(f"m{n}", "medium", float(n % 2), final=True))
    pool = make_pool({"medium": (1.0, 4.0), "medium-too": (1.0, 4.0)})
    votes = [voter.vote(make_task(), FixedMemory(), pool) for voter in voters]
    assert votes[1].shares["medium-too"] > votes[1].shares["medium"]
    assert all(sum(vote.shares.values()) == pytest.approx(1.0) for vote in votes)


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ({"dimension_bets": 1.0}, "unknown voter 'dimension_bets'. Did you mean 'dimension_best'?"),
        ({"bandit": -1.0}, "the weight of 'bandit' is -1.0"),
        ({"bandit": float("nan")}, "the weight of 'bandit' is nan"),
        ({"bandit": 0.0}, "no voter has a weight above 0"),
        ({}, "no voter has a weight above 0"),
    ],
)
def test_a_wrong_weight_is_named(weights: dict[str, float], words: str) -> None:
    with pytest.raises(VoterError) as caught:
        make_voters(weights)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (make_evidence("a", "small", 1.5), "the score is 1.5"),
        (make_evidence("a", "small", float("nan")), "the score is nan"),
        (make_evidence("a", "small", None), "the score is None"),  # type: ignore[arg-type]
        (make_evidence("a", "small", 0.5, cost_usd=-1), "the cost is -1"),
        (make_evidence("a", "small", 0.5, cost_usd=None), "the cost is None"),  # type: ignore[arg-type]
        (make_evidence("", "small", 0.5), "the key is empty"),
        (replace(make_evidence("a", "small", 0.5), dimension="bugfix"), "unknown dimension 'bugfix'. Did you mean"),  # type: ignore[arg-type]
        (replace(make_evidence("a", "small", 0.5), at="2026-12-01"), "'at' has no time zone"),  # type: ignore[arg-type]
    ],
)
def test_evidence_out_of_range_is_refused_and_leaves_no_trace(wrong: Evidence, words: str) -> None:
    router = Router(make_pool())
    with pytest.raises(RoutingError, match=words):
        router.observe(wrong)
    assert len(router) == 0

"""What a router knows does not depend on what it was asked, and one odd attempt does no harm to the others."""

import math
from collections.abc import Mapping
from datetime import date
from functools import partial
from itertools import permutations

import numpy as np
import pytest

from routing import ModelSpec, RewardWeights, Router
from routing.encoders.hashing import HashingEncoder
from routing.errors import PoolError, RoutingError
from routing.pool import ModelPool
from routing.types import Evidence, RoutingDecision, Vector, Voter
from routing.voters import DEFAULT_WEIGHTS, FACTORIES
from tests.support.routing import FixedVoter, make_evidence, make_pool

TEXT = "parse_date crashes on empty strings"


class Turned(HashingEncoder):
    """Another encoder: the same words lie elsewhere."""

    name = "turned:1"

    def encode(self, texts: object) -> Vector:
        return np.ascontiguousarray(np.roll(super().encode(texts), 7, axis=1))  # type: ignore[arg-type]


def scores(decision: RoutingDecision) -> Mapping[str, float]:
    return {line.model: line.expected_score for line in decision.ranked}


def decided(router: Router, **asked: object) -> RoutingDecision:
    return router.decide(router.task("asked", TEXT), explore=False, **asked)  # type: ignore[arg-type]


def test_what_was_asked_before_changes_no_answer() -> None:
    one, other = Router(make_pool()), Router(make_pool())
    for router in (one, other):
        for number in range(30):
            router.observe(make_evidence(f"s{number}", "small", float(number % 2), minutes=number))
            router.observe(make_evidence(f"l{number}", "large", float(number % 3 == 0), minutes=number))
    decided(other)
    assert scores(decided(one, exclude=["large"])) == scores(decided(other, exclude=["large"]))
    assert scores(decided(one)) == scores(decided(other))


def test_free_attempts_tell_nothing_of_what_a_paid_model_costs() -> None:
    free = ModelSpec(name="free", litellm_id="t/f", input_usd_per_mtok=0, output_usd_per_mtok=0, free=True)
    dear = ModelSpec(name="dear", litellm_id="t/d", input_usd_per_mtok=5, output_usd_per_mtok=25)
    router = Router(ModelPool((free, dear)))
    for number in range(100):
        router.observe(make_evidence(f"f{number}", "free", 0.0, cost_usd=0.0, minutes=number, text=TEXT))
    costs = {line.model: line.expected_cost_usd for line in decided(router).ranked}
    assert costs == {"free": 0.0, "dear": pytest.approx(0.95)}
    assert [line.model for line in decided(router, budget_usd=0.30).ranked] == ["free"]


def test_vectors_of_another_encoder_teach_nothing_until_they_are_made_again() -> None:
    old, new = HashingEncoder(), Turned()
    texts = [("legend colorbar axes", "socket timeout retry")[number % 2] + f" {number}" for number in range(40)]
    live, restarted = Router(make_pool(), encoder=new), Router(make_pool(), encoder=new)
    for encoder, routers in ((old, [live]), (new, [live, restarted])):
        for number, text in enumerate(texts):
            vector = encoder.encode([text])[0]
            evidence = make_evidence(
                f"k{number}", "small", float(number % 2), minutes=number, embedding=vector, encoder=encoder.name
            )
            for router in routers:
                router.observe(evidence)
    assert scores(decided(live)) == scores(decided(restarted))


def test_a_damaged_vector_of_another_encoder_does_no_harm() -> None:
    router = Router(make_pool())
    damaged = np.full(384, np.nan, dtype=np.float32)
    kept = router.observe(make_evidence("bad", "small", 1.0, embedding=damaged, encoder="minilm:1"))
    assert kept.embedding is damaged  # for the table: it is embedded again in the background
    assert all(math.isfinite(score) for score in scores(decided(router)).values())


def test_namings_stay_where_no_voter_believes_anything() -> None:
    router = Router(
        make_pool(), voter_weights={"namer": 1.0}, factories={"namer": lambda _: FixedVoter("namer", {"small": 1.0})}
    )
    assert router.observe(make_evidence("k", "small", 1.0, namings={"namer": 0.67})).namings == {"namer": 0.67}


def test_what_was_said_before_an_attempt_is_known_whichever_of_its_evidences_comes_first() -> None:
    said = make_evidence("k", "small", 0.4, views={"a": 0.9, "b": 0.1}, namings={"namer": 0.5}, minutes=1)
    merged = make_evidence("k", "small", 1.0, final=True, minutes=9)
    judged = make_evidence("k", "small", 0.0, final=True, verifier_score=0.4, minutes=5)
    kept = []
    for order in permutations((said, merged, judged)):
        router = Router(make_pool())
        for evidence in order:
            router.observe(evidence)
        last = router.observe(merged)
        kept.append((last.views, last.namings, last.verifier_score, last.made_at, scores(decided(router))))
    assert kept == [(said.views, said.namings, 0.4, said.at, kept[0][4])] * 6


def replaced_pool(day: date) -> ModelPool:
    """`large` stands for another model since a day."""
    specs = make_pool().models
    return ModelPool(tuple(s.model_copy(update={"since": day}) if s.name == "large" else s for s in specs))


def test_what_another_model_of_its_name_did_before_says_nothing_of_a_model() -> None:
    pool = replaced_pool(date(2026, 1, 2))
    replaced, gone = Router(pool), Router(pool)
    for router, name in ((replaced, "large"), (gone, "one that has left")):
        for number in range(40):
            router.observe(make_evidence(f"k{number}", name, 0.0, cost_usd=9.0, minutes=number))
    assert len(replaced) == 40, "its attempts still tell how hard tasks are"
    assert scores(decided(replaced)) == pytest.approx(scores(decided(gone)))
    costs = [{line.model: line.expected_cost_usd for line in decided(router).ranked} for router in (replaced, gone)]
    assert costs[0] == pytest.approx(costs[1])


def test_what_a_model_did_since_it_came_counts_in_any_order_of_its_evidence() -> None:
    old = [make_evidence(f"a{n}", "large", 1.0, minutes=n, text=TEXT) for n in range(5)]
    new = [make_evidence(f"b{n}", "large", 0.0, minutes=24 * 60 + n, text=TEXT) for n in range(5)]
    late = make_evidence("c", "large", 1.0, final=True, minutes=48 * 60, attempted_at=old[0].at, text=TEXT)
    forwards, backwards, without = (Router(replaced_pool(date(2026, 1, 2))) for _ in range(3))
    for evidence in (*old, *new, late):
        assert forwards.observe(evidence).model == "large", "the database keeps the pool's name"
    for evidence in reversed((*old, *new, late, late)):
        backwards.observe(evidence)
    for evidence in new:
        without.observe(evidence)
    assert scores(decided(forwards)) == scores(decided(backwards))
    assert scores(decided(without))["large"] < scores(decided(Router(make_pool())))["large"]
    assert {near.model for near in decided(forwards).neighbours} == {"large", "large before 2026-01-02"}


@pytest.mark.parametrize("given", [{"max_attempts": 0}, {"memory_capacity": 0}])
def test_a_router_of_nothing_is_refused(given: dict[str, int]) -> None:
    with pytest.raises(RoutingError, match="is 0; it must be 1 or more"):
        Router(make_pool(), **given)  # type: ignore[arg-type]


def test_a_budget_that_is_no_number_and_a_pin_without_a_name_are_refused() -> None:
    router = Router(make_pool())
    with pytest.raises(RoutingError, match="budget_usd is not a number"):
        decided(router, budget_usd=math.nan)
    with pytest.raises(PoolError, match="unknown model ''"):
        decided(router, pinned="")


class ForgetfulVoter(FixedVoter):
    """One of somebody else's, which votes but can neither learn nor forget."""

    def learn(self, evidence: Evidence) -> None:
        raise RuntimeError("this voter cannot learn")

    def forget(self, key: str) -> None:
        raise RuntimeError("this voter cannot forget")


def _given(voter: Voter, _: RewardWeights) -> Voter:
    return voter


def test_a_voter_that_throws_while_it_learns_keeps_the_others_from_nothing() -> None:
    silent = FixedVoter("own", {})
    routers = [
        Router(
            make_pool(),
            # It stands before the others: they are told after it.
            voter_weights={"own": 1.0, **DEFAULT_WEIGHTS},
            factories={**FACTORIES, "own": partial(_given, voter)},
            memory_capacity=2,
            seed=1,
        )
        for voter in (silent, ForgetfulVoter("own", {}))
    ]
    for router in routers:
        for number in range(4):  # two of them are forgotten again
            router.observe(make_evidence(f"{number}:a", "large", 1.0, task_key=str(number), minutes=number))

    assert decided(routers[0]) == decided(routers[1])


def test_a_list_of_models_may_be_any_iterable_but_no_string() -> None:
    router = Router(make_pool())
    assert scores(decided(router, deny=iter(["small", "large"]))).keys() == {"medium"}
    assert scores(decided(router, allow=iter(["small", "large"]))).keys() == {"small", "large"}
    assert scores(decided(router, exclude=iter(["small", "large"]))).keys() == {"medium"}

    for what in ("deny", "allow", "exclude"):
        with pytest.raises(RoutingError, match=f"{what} is the string 'small'\\. Give a list of models' names"):
            decided(router, **{what: "small"})

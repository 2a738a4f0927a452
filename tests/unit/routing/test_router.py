"""The router as others use it."""

import math
import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routing import ModelAnswer, ModelSpec, Router, RoutingTask
from routing.errors import EncoderError, NoModelLeft, PoolError, RoutingError
from routing.types import Dimension, Vector
from store.settings import Settings
from tests.support.issue_texts import SUBJECTS
from tests.support.routing import make_evidence, make_pool

FIRST, SECOND, THIRD = SUBJECTS["dates"]


class OwnEncoder:
    """An encoder of somebody else's, with the same rows for all texts."""

    name = "own"
    threshold = 0.5
    dimensions = 2

    def __init__(self, rows: list[list[float]]) -> None:
        self._rows = rows

    def encode(self, _: Sequence[str]) -> Vector:
        return self._rows  # type: ignore[return-value]


def test_a_merge_and_a_close_change_the_next_choice() -> None:
    router = Router(make_pool(), seed=1)
    before = router.decide(router.task("a", FIRST, repository="o/r"), explore=False)
    text: dict[str, Any] = {"text": FIRST, "repository": "o/r", "link": "https://github.com/o/r/issues/1"}
    router.observe(make_evidence("a:1", before.chosen, 0.0, task_key="a", final=True, **text))
    other = next(name for name in ("small", "medium") if name != before.chosen)
    router.observe(make_evidence("a:2", other, 1.0, task_key="a", final=True, **text))

    after = router.decide(router.task("b", SECOND, repository="o/r"), explore=False)

    assert before.neighbours == ()
    assert after.chosen == other
    assert {n.key for n in after.neighbours} == {"a:1", "a:2"}
    assert any(f"{other} solved 1 of 1 similar task" in reason for reason in after.reasons)
    assert any(f"{before.chosen} solved 0 of 1 similar task" in reason for reason in after.reasons)


def test_one_seed_gives_one_series_of_decisions() -> None:
    def series(seed: int) -> list[str]:
        router = Router(make_pool(), seed=seed)
        return [router.decide(router.task(str(n), FIRST)).chosen for n in range(20)]

    assert series(1) == series(1)
    assert len(set(series(1))) > 1  # it explores


BUDGETS = st.floats(0, 3) | st.builds(
    lambda price, share: price * share,  # just below and above what an attempt costs: there it is decided
    st.sampled_from([spec.prior_cost_usd for spec in make_pool().models]),
    st.floats(0.8, 1.2),
)


@settings(deadline=None, max_examples=60)
@given(
    budget=BUDGETS,
    deny=st.sets(st.sampled_from(["small", "medium", "large"])),
    exclude=st.sets(st.sampled_from(["small", "medium", "large"])),
)
def test_no_decision_passes_a_budget_or_a_list(budget: float, deny: set[str], exclude: set[str]) -> None:
    router = Router(make_pool(), seed=0)
    task = router.task("a", FIRST)
    costs = {line.model: line.expected_cost_usd for line in router.decide(task).ranked}
    if not any(cost <= budget and name not in deny | exclude for name, cost in costs.items()):
        with pytest.raises(NoModelLeft) as caught:
            router.decide(task, budget_usd=budget, deny=deny, exclude=exclude)
        assert all(f"{name}: " in str(caught.value) for name in costs)
        return
    decision = router.decide(task, budget_usd=budget, deny=deny, exclude=exclude)
    for line in decision.ranked:
        assert line.expected_cost_usd <= budget
        assert line.model not in deny | exclude
    assert sum(step.cost_usd for step in decision.plan) <= budget + 1e-9


def test_a_pinned_model_is_used_or_refused_in_words() -> None:
    router = Router(make_pool())
    task = router.task("a", FIRST)

    assert router.decide(task, pinned="small").propensity == 1.0
    assert [step.model for step in router.decide(task, pinned="small").plan] == ["small"]
    assert router.escalate(task, router.decide(task, pinned="small"), {"small": 0.0}) is None
    with pytest.raises(PoolError, match=r"unknown model 'smal'\. Did you mean 'small'"):
        router.decide(task, pinned="smal")
    with pytest.raises(NoModelLeft, match="large was asked for, but may not be used: expected to cost"):
        router.decide(task, pinned="large", budget_usd=0.1)
    with pytest.raises(NoModelLeft, match="large was asked for, but may not be used: not allowed here"):
        router.decide(task, pinned="large", allow=["small"])


def test_escalation_takes_another_model_while_it_is_worth_it() -> None:
    router = Router(make_pool(), seed=1)
    task = router.task("a", FIRST)
    decision = router.decide(task)
    following = router.escalate(task, decision, {decision.chosen: 0.0})

    assert following is not None
    assert following.model != decision.chosen
    assert router.escalate(task, decision, {decision.chosen: 0.0}, remaining_usd=0.001) is None
    assert router.escalate(task, decision, dict.fromkeys(router.pool.names, 0.0)) is None


def test_evidence_comes_back_with_what_was_said_of_its_model() -> None:
    router = Router(make_pool(), seed=1)
    task = router.task("a", FIRST)
    first = router.decide(task)
    second = router.decide(task, exclude=[first.chosen])
    for decision in (first, second):
        seen = router.observe(make_evidence(f"a:{decision.chosen}", decision.chosen, 0.0, task_key="a"))
        assert len(seen.views) > 1
        assert seen.views == {voter: models[decision.chosen] for voter, models in decision.views.items()}


def test_an_outcome_comes_back_with_the_verifiers_score() -> None:
    router = Router(make_pool())
    router.observe(make_evidence("k", "small", 0.9))

    assert router.observe(make_evidence("k", "small", 0.0, final=True, minutes=1)).verifier_score == 0.9


def test_a_tasks_own_failure_counts_once_whether_it_is_decided_again_or_not() -> None:
    router = Router(make_pool())
    for n, (model, score) in enumerate([("small", 1.0), ("medium", 0.0), ("large", 1.0)]):
        router.observe(make_evidence(f"k{n}", model, score, minutes=n))
    task = router.task("a", FIRST)
    first = router.decide(task, explore=False)
    expected = {line.model: line.expected_score for line in first.ranked}
    usual = {line.model: line.expected_cost_usd for line in first.ranked}
    router.observe(
        make_evidence("a:1", first.chosen, 0.0, task_key="a", cost_usd=usual[first.chosen], text=FIRST, minutes=9)
    )
    again = router.decide(task, exclude=[first.chosen], explore=False)  # the voters have gained or lost a little weight

    assert "a:1" not in {near.key for near in again.neighbours}
    assert {line.model: line.expected_score for line in again.ranked} == pytest.approx(
        {model: score for model, score in expected.items() if model != first.chosen}, abs=0.01
    )
    steps = [router.escalate(task, decision, {first.chosen: 0.0}) for decision in (first, again)]
    assert steps[0] is not None
    assert steps[1] is not None
    assert steps[1].model == steps[0].model
    assert steps[1].expected_score == pytest.approx(steps[0].expected_score, abs=0.01)
    other = router.decide(router.task("b", FIRST), explore=False)
    assert "a:1" in {near.key for near in other.neighbours}, "to another task it is a neighbour"
    assert all(line.expected_score < expected[line.model] for line in other.ranked)


def test_what_left_the_memory_is_forgotten_by_all() -> None:
    router = Router(make_pool(), memory_capacity=2)
    fresh = Router(make_pool(), memory_capacity=2)
    router.observe(make_evidence("old", "large", 1.0, text=FIRST, final=True))
    for one in (router, fresh):
        one.observe(make_evidence("a", "small", 1.0, text=SECOND, minutes=1))
        one.observe(make_evidence("b", "medium", 0.0, text=THIRD, minutes=2))

    assert len(router) == 2
    assert router.decide(router.task("x", FIRST), explore=False) == fresh.decide(fresh.task("x", FIRST), explore=False)


@pytest.mark.parametrize("order", ["abcd", "dcba", "abcda", "badcab"])
def test_a_full_memory_keeps_the_newest_in_whatever_order_and_however_often_they_come(order: str) -> None:
    router, fresh = Router(make_pool(), memory_capacity=3), Router(make_pool(), memory_capacity=3)
    made = {
        key: make_evidence(key, model, score, minutes=minute, text=FIRST)
        for minute, (key, model, score) in enumerate(
            [("a", "small", 1.0), ("b", "small", 0.0), ("c", "large", 1.0), ("d", "large", 0.0)]
        )
    }
    for key in order:
        router.observe(made[key])
    for key in "bcd":
        fresh.observe(made[key])

    task = router.task("x", FIRST)
    assert [near.key for near in router.decide(task).neighbours] == ["d", "c", "b"]
    assert router.decide(task, explore=False) == fresh.decide(task, explore=False)


def test_costs_follow_what_attempts_really_cost() -> None:
    router = Router(make_pool())
    for n in range(10):
        router.observe(make_evidence(f"k{n}", "small", 1.0, cost_usd=1.5))
        router.observe(make_evidence(f"m{n}", "medium", 1.0, cost_usd=0.182))
    costs = {line.model: line.expected_cost_usd for line in router.decide(router.task("a", FIRST)).ranked}

    assert 1.0 < costs["small"] < 1.5
    assert costs["large"] == pytest.approx(0.95, rel=0.25)  # nobody tried it: its price, on tasks that look usual


def test_a_kind_of_task_that_is_dear_for_one_model_is_expected_to_be_for_all() -> None:
    router = Router(make_pool())
    for n in range(30):
        router.observe(make_evidence(f"b{n}", "small", 1.0, cost_usd=0.05, dimension=Dimension.BUG_FIXING))
        router.observe(make_evidence(f"a{n}", "small", 1.0, cost_usd=0.2, dimension=Dimension.ALGORITHM))

    usual, dear = (_costs_of(router, kind)["large"] for kind in (Dimension.BUG_FIXING, Dimension.ALGORITHM))
    assert dear > 2 * usual


def test_one_absurd_cost_does_not_make_its_kind_of_task_dear() -> None:
    router = Router(make_pool())
    for n in range(60):
        kind = (Dimension.BUG_FIXING, Dimension.ALGORITHM)[n % 2]
        router.observe(make_evidence(f"k{n}", "small", 1.0, cost_usd=0.05, dimension=kind))
    router.observe(make_evidence("absurd", "small", 1.0, cost_usd=50.0, dimension=Dimension.ALGORITHM))

    usual, same = (_costs_of(router, kind)["large"] for kind in (Dimension.BUG_FIXING, Dimension.ALGORITHM))
    assert same < 2 * usual


def _costs_of(router: Router, kind: Dimension) -> dict[str, float]:
    return {line.model: line.expected_cost_usd for line in router.decide(RoutingTask("x", "", kind)).ranked}


def test_a_task_without_words_and_one_of_a_model_that_left_do_no_harm() -> None:
    router = Router(make_pool())
    router.observe(make_evidence("a", "left-the-pool", 1.0, text=FIRST))
    router.observe(make_evidence("b", "small", 1.0))

    decision = router.decide(RoutingTask("x", "", Dimension.ALGORITHM))
    assert {line.model for line in decision.ranked} == set(router.pool.names)
    assert router.decide(router.task("y", FIRST)).neighbours[0].model == "left-the-pool"


def test_run_escalates_until_the_answer_is_verified_and_remembers() -> None:
    router = Router(make_pool(), seed=1)
    called: list[str] = []

    def call_model(model: ModelSpec, task: RoutingTask) -> ModelAnswer[str]:
        called.append(model.name)
        return ModelAnswer(f"patch of {model.name}", 0.01)

    result = router.run(
        FIRST, call_model, lambda _, answer: float(answer == f"patch of {called[0]}" and len(called) > 9)
    )
    assert result.best.score == 0.0
    assert len(result.attempts) == len(set(called)) == 3
    assert result.cost_usd == pytest.approx(0.03)
    assert len(router) == 3

    solved = router.run(SECOND, call_model, lambda _, __: 1.0)
    assert len(solved.attempts) == 1
    assert solved.best.answer == f"patch of {solved.decision.chosen}"


def test_an_attempt_brings_what_was_learnt_from_it_for_its_outcome_and_for_a_database() -> None:
    router = Router(make_pool(), seed=1)
    attempt = router.run(router.task("job", FIRST), lambda *_: ModelAnswer("patch", 0.01), lambda *_: 1.0).best

    assert (attempt.key, attempt.evidence.score, attempt.evidence.final) == (f"job:{attempt.model}", 1.0, False)
    assert attempt.evidence.embedding is not None
    later = router.observe(replace(attempt.evidence, score=0.0, final=True, at=attempt.evidence.at + timedelta(days=3)))
    assert len(router) == 1
    assert later.verifier_score == 1.0
    assert [(near.score, near.final) for near in router.decide(router.task("next", SECOND)).neighbours] == [(0.0, True)]


@pytest.mark.parametrize(
    ("answer", "verdict", "words"),
    [
        ("patch", 1.0, "call_model returned str; return ModelAnswer"),
        (ModelAnswer("patch", -1.0), 1.0, "call_model returned a cost of -1.0 for"),
        (ModelAnswer("patch", None), 1.0, "call_model returned a cost of None for"),  # type: ignore[arg-type]
        (ModelAnswer("patch", 0.1), 3.0, "verify returned 3.0; a score is within"),
        (ModelAnswer("patch", 0.1), math.nan, "verify returned nan; a score is within"),
        (ModelAnswer("patch", 0.1), None, "verify returned None; a score is within"),
        (ModelAnswer("patch", 0.1), "passed", "verify returned 'passed'; a score is within"),
        pytest.param(ModelAnswer("patch", 0.1), 10**400, "verify returned 1000", id="huge"),
    ],
)
def test_run_names_what_call_model_and_verify_should_not_have_returned(answer: Any, verdict: Any, words: str) -> None:
    router = Router(make_pool())
    with pytest.raises(RoutingError, match=words):
        router.run(FIRST, lambda *_: answer, lambda *_: verdict)
    assert len(router) == 0


@pytest.mark.parametrize(("verdict", "score"), [(True, 1.0), (np.float32(0.5), 0.5), (np.bool_(False), 0.0), (1, 1.0)])
def test_a_verdict_may_be_any_number_or_a_truth(verdict: Any, score: float) -> None:
    result = Router(make_pool()).run(FIRST, lambda *_: ModelAnswer("patch", 0), lambda *_: verdict)

    assert (type(result.best.score), result.best.score) == (float, score)


@pytest.mark.parametrize("wrong", [math.nan, 2.0, None])
def test_run_refuses_a_good_enough_that_no_score_reaches(wrong: Any) -> None:
    with pytest.raises(RoutingError, match=r"good_enough is .*; a score is within \[0, 1\]"):
        Router(make_pool()).run(FIRST, lambda *_: ModelAnswer("patch", 0), lambda *_: 1.0, good_enough=wrong)


def test_what_is_no_task_is_named() -> None:
    router = Router(make_pool())
    with pytest.raises(RoutingError, match=r"the task is of type str; make it with Router.task\(key, text\)"):
        router.decide(FIRST)  # type: ignore[arg-type]
    with pytest.raises(RoutingError, match=r"task 'x': unknown dimension 'bugfix'\. Did you mean 'bug_fixing'"):
        router.decide(RoutingTask("x", FIRST, "bugfix"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([[1.0, 1.0]], "'own': the embedding has length 1.414; it must be 1"),
        ([[math.nan, 1.0]], "'own': the embedding has length nan"),
        ([[1.0, 0.0, 0.0]], r"'own': gave an array of shape \(1, 3\) for one text; it must be \(1, 2\)"),
        ([], r"'own': gave an array of shape \(0,\)"),
    ],
)
def test_a_wrong_encoder_is_named_before_a_model_is_paid_for(rows: list[list[float]], words: str) -> None:
    called: list[str] = []

    def call_model(model: ModelSpec, _: RoutingTask) -> ModelAnswer[str]:
        called.append(model.name)
        return ModelAnswer("patch", 0.1)

    with pytest.raises(EncoderError, match=words):
        Router(make_pool(), encoder=OwnEncoder(rows)).run(FIRST, call_model, lambda *_: 1.0)
    assert called == []


def test_an_encoder_may_give_plain_lists() -> None:
    router = Router(make_pool(), encoder=OwnEncoder([[0.6, 0.8]]))
    router.run(FIRST, lambda *_: ModelAnswer("patch", 0.1), lambda *_: 1.0)

    assert [near.similarity for near in router.decide(router.task("next", SECOND)).neighbours] == [pytest.approx(1.0)]


def test_a_tasks_own_vector_must_be_a_unit_vector() -> None:
    router = Router(make_pool(), encoder=OwnEncoder([[0.6, 0.8]]))
    with pytest.raises(EncoderError, match=r"task 'x': the embedding has length 5\.000; it must be 1"):
        router.decide(replace(router.task("x", FIRST), embedding=np.array([3, 4], dtype=np.float32)))


def test_a_router_is_made_from_the_settings(tmp_path: Path) -> None:
    example = Path(__file__).parents[3] / "models.example.yaml"
    settings = Settings(models_file=example, voter_weights={"bandit": 1.0}, reward_usd_weight=0.0)
    router = Router.from_settings(settings)

    assert [vote.voter for vote in router.decide(router.task("a", FIRST)).votes] == ["bandit"]
    assert router.reward_weights.usd == 0.0
    assert Router.from_files(example).pool.names == router.pool.names


def test_a_router_that_knows_nothing_yet_is_still_a_router() -> None:
    given = Router(make_pool())

    assert len(given) == 0
    assert (given or Router(make_pool())) is given


def test_threads_may_share_a_router() -> None:
    router = Router(make_pool(), memory_capacity=5)
    failures: list[BaseException] = []

    def work(worker: int) -> None:
        try:
            for n in range(25):
                router.observe(make_evidence(f"{worker}:{n % 7}", "small", 1.0, text=SECOND, minutes=n))
                assert len(router.decide(router.task(str(n), FIRST)).ranked) == 3
        except BaseException as error:  # noqa: BLE001  (a thread's failure must reach the test)
            failures.append(error)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert failures == []
    assert len(router) == 5

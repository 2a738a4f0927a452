"""What a judge and an agreement do to a score: a little, in their own direction, and never to a verdict."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.agreement import EarlierPatch
from sandbox.opinions import Opinion
from sandbox.reading import Facts
from sandbox.results import TestCommand, TestStatus, VerificationResult
from sandbox.signal_weights import BASE, WEIGHTS
from sandbox.verdict import reach
from sandbox.verify import VerifyRequest, verify
from tests.support.patches import change
from tests.unit.sandbox.test_verify_flaky import NoTrees, ScriptedBackend
from tests.unit.sandbox.test_verify_verdict import WITH_TEST, T, facts, report

PASSED: Mapping[str, TestStatus] = {T + "a": "passed"}
FAILED: Mapping[str, TestStatus] = {T + "a": "failed"}
PROVEN, UNPROVEN, BREAKING = facts(FAILED, PASSED), facts(PASSED, PASSED), facts(PASSED, FAILED)
UNTESTED = replace(UNPROVEN, before=None, after=None)
SUSPICIOUS = replace(UNPROVEN, patch=WITH_TEST, after=report({**PASSED, T + "new": "failed"}))
SAME = EarlierPatch(1, "small", change("src/a.py"))
OTHER = EarlierPatch(2, "medium", change("src/b.py"))


def with_opinion(known: Facts, probability: float | None, reason: str = "It does.") -> VerificationResult:
    return reach(replace(known, opinion=Opinion("wise", probability, reason, 0.002)))


def signal(result: VerificationResult, name: str) -> tuple[float | None, str]:
    return next((one.value, one.evidence) for one in result.signals if one.name == name)


@pytest.mark.parametrize(
    ("known", "low", "high"), [(PROVEN, 0.7, 1.0), (UNPROVEN, 0.0, 0.6), (UNTESTED, 0.0, 0.4), (SUSPICIOUS, 0.0, 0.3)]
)
@given(probability=st.floats(0, 1), dimension=st.sampled_from(["", *WEIGHTS]))
def test_a_judge_moves_a_score_by_its_weight_at_most_and_no_verdict(
    known: Facts, low: float, high: float, probability: float, dimension: str
) -> None:
    known = replace(known, dimension=dimension)
    without, judged = reach(known), with_opinion(known, probability)
    weight = WEIGHTS.get(dimension, BASE)["judge"]
    assert judged.verdict == without.verdict
    assert low <= judged.score <= high
    assert abs(judged.score - without.score) <= weight * (high - low) + 1e-4


def test_a_judge_puts_patches_in_order_that_no_test_tells_apart() -> None:
    scores = [with_opinion(UNPROVEN, probability).score for probability in (0.1, 0.5, 0.9)]
    assert scores == sorted(scores)
    assert len(set(scores)) == 3


def test_an_opinion_is_told_with_its_price_and_no_opinion_with_its_reason() -> None:
    assert signal(with_opinion(PROVEN, 0.8), "judge") == (0.8, "wise ($0.0020): It does.")
    silent = with_opinion(PROVEN, None, "HTTP 500")
    assert signal(silent, "judge") == (None, "wise gives no opinion ($0.0020): HTTP 500")
    assert silent.score == reach(PROVEN).score
    assert signal(reach(PROVEN), "judge") == (None, "No model judges this patch.")


@pytest.mark.parametrize("known", [UNPROVEN, UNTESTED])
def test_the_same_change_by_another_model_lifts_a_score_a_little(known: Facts) -> None:
    agreed = reach(replace(known, earlier=[OTHER, SAME]))
    assert agreed.verdict == "unverified"
    assert signal(agreed, "agreement") == (1.0, "100% of the changed lines are those of attempt 1, small's.")
    assert reach(known).score < agreed.score <= reach(known).score + BASE["agreement"]
    assert agreed.score < 0.7


def test_another_change_by_another_model_lowers_nothing() -> None:
    alone = reach(replace(UNPROVEN, earlier=[OTHER]))
    assert signal(alone, "agreement") == (0.0, "0% of the changed lines are those of attempt 2, medium's.")
    assert alone.score == reach(UNPROVEN).score


@pytest.mark.parametrize("known", [BREAKING, SUSPICIOUS])
def test_a_patch_that_something_speaks_against_agrees_in_vain(known: Facts) -> None:
    result = reach(replace(known, earlier=[SAME]))
    assert signal(result, "agreement")[0] is None
    assert result.score == reach(known).score


def test_only_what_the_tests_can_measure_counts_as_measured() -> None:
    assert reach(UNPROVEN).measured
    assert not reach(UNTESTED).measured
    for before in (report({}, 5), report(FAILED, note="A service is missing."), report(FAILED, timed_out=True)):
        assert not reach(replace(UNPROVEN, before=before)).measured
    # That the patch keeps the tests from running says something of the patch.
    assert reach(replace(UNPROVEN, after=report(PASSED, note="They do not agree."))).measured


@pytest.mark.parametrize(
    ("runs", "verdict", "asked"),
    [(["ab", "ab"], "unverified", 1), (["Ab", "ab", "ab", "Ab"], "verified", 1), (["ab", "aB", "aB"], "breaking", 0)],
)
def test_a_judge_reads_the_task_and_the_patch_once_the_tests_have_run_and_broke_nothing(
    runs: list[str], verdict: str, asked: int
) -> None:
    seen: list[tuple[str, str]] = []

    def judge(task_text: str, patch: str) -> Opinion:
        assert not backend.runs, "the tests come first"
        seen.append((task_text, patch))
        return Opinion("wise", 0.25, "It seems so.")

    backend = ScriptedBackend(runs)
    command = TestCommand("python3 -m pytest", "pytest", "test")
    patch = change("src/a.py")
    request = VerifyRequest("base", patch, "image", {"task": "1"}, command, task_text="Mend it.", judge=judge)
    result = verify(request, backend, NoTrees())
    assert result.verdict == verdict
    assert seen == [("Mend it.", patch)] * asked
    assert signal(result, "judge")[0] == (0.25 if asked else None)


def test_a_rejected_or_empty_patch_is_not_judged() -> None:
    def judge(task_text: str, patch: str) -> Opinion:
        raise AssertionError("nobody asked")

    command = TestCommand("python3 -m pytest", "pytest", "test")
    request = VerifyRequest("base", change(".github/workflows/x.yml"), "image", {"task": "1"}, command, judge=judge)
    assert verify(request, ScriptedBackend([]), NoTrees()).verdict == "rejected"
    assert verify(replace(request, patch=""), ScriptedBackend([]), NoTrees()).verdict == "empty"

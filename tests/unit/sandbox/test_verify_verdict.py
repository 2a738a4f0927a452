"""From runs of tests to a verdict and a score."""

from collections.abc import Mapping
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing.types import Dimension
from sandbox.comparison import compare, proving
from sandbox.diff_place import named_files
from sandbox.patch import inspect_patch
from sandbox.reading import Facts
from sandbox.results import TestReport, TestStatus
from sandbox.signal_weights import BASE, WEIGHTS
from sandbox.verdict import reach
from tests.support.patches import change

SOURCE = inspect_patch(change("src/a.py"))
WITH_TEST = inspect_patch(change("src/a.py") + change("tests/test_a.py", removed=["x"], added=["    assert f() == 1"]))
T = "tests/test_a.py::"
BINARY = f"diff --git a/x b/x\nindex {'0' * 40}..{'1' * 40} 100644\nGIT binary patch\nliteral 0\nHcmV?d00001\n\n"


def report(results: Mapping[str, TestStatus], exit_code: int | None = None, **changes: object) -> TestReport:
    code = int(any(status in ("failed", "error") for status in results.values())) if exit_code is None else exit_code
    made = TestReport("python3 -m pytest", dict(results), code, False, 1.0, "")
    return replace(made, **changes)  # type: ignore[arg-type]


def facts(before: Mapping[str, TestStatus], after: Mapping[str, TestStatus], **changes: object) -> Facts:
    return replace(Facts(SOURCE, report(before), report(after)), **changes)  # type: ignore[arg-type]


def test_each_dimension_has_weights_over_all_signals_that_sum_to_one() -> None:
    assert set(WEIGHTS) == set(Dimension)
    for weights in (BASE, *WEIGHTS.values()):
        assert sum(weights.values()) == pytest.approx(1.0)
        assert list(weights) == list(BASE)
        assert all(weight > 0 for weight in weights.values())


def test_the_kind_of_task_says_what_counts_and_missing_signals_are_left_out() -> None:
    proven = facts({T + "a": "failed", T + "b": "passed"}, {T + "a": "failed", T + "b": "passed"})
    as_bug, as_refactoring = (reach(replace(proven, dimension=d)) for d in ("bug_fixing", "code_refactoring"))

    # Nothing broke and nothing was fixed: no proof for a bug, and most of what a refactoring can show.
    assert as_bug.score < as_refactoring.score
    for result, weights in ((as_bug, WEIGHTS["bug_fixing"]), (as_refactoring, WEIGHTS["code_refactoring"])):
        known = [signal for signal in result.signals if signal.value is not None]
        mean = sum(s.weight * (s.value or 0.0) for s in known) / sum(s.weight for s in known)
        assert len(known) < len(result.signals)
        assert {s.name: s.weight for s in result.signals} == weights
        assert result.score == pytest.approx(min(mean, 0.6), abs=1e-4)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("The bug is in src/a.py, I think.", 1.0),
        ('  File "/home/me/project/src/a.py", line 3, in f', 1.0),
        ("See `a.py`.", 1.0),
        ("Look at lib/a.py", 0.0),  # another folder's file of the same name
        ("README.md is wrong", 0.0),
        ('  File "/usr/lib/python3.11/site-packages/x/y.py", line 3', None),
        ("np.linalg.norm fails", None),
        ("", None),
    ],
)
def test_the_place_of_the_diff_is_held_against_the_files_that_the_text_names(text: str, value: float | None) -> None:
    result = reach(replace(facts({}, {}), task_text=text))

    assert next(signal.value for signal in result.signals if signal.name == "diff_place") == value


@pytest.mark.parametrize("piece", ["a/", "a.", "../", "-", "a.py/", "\\", "a.py "])
def test_hostile_text_does_not_stall_the_search_for_files(piece: str) -> None:
    assert len(named_files(piece * (200_000 // len(piece)))) <= 200


@pytest.mark.parametrize(
    ("name", "patch"),
    [
        ("few_files", "".join(change(f"src/f{n}.py") for n in range(40))),
        ("modes_kept", "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n"),
        ("locks_kept", change("uv.lock")),
        (
            "text_only",
            f"diff --git a/x b/x\nindex {'0' * 40}..{'1' * 40} 100644\nGIT binary patch\nliteral 0\nHcmV?d00001\n\n",
        ),
    ],
)
def test_what_a_reviewer_would_stop_at_is_a_signal(name: str, patch: str) -> None:
    def value(of: str) -> float:
        signals = reach(replace(facts({T + "a": "passed"}, {T + "a": "passed"}), patch=inspect_patch(of))).signals
        return next(signal.value for signal in signals if signal.name == name) or 0.0

    assert value(patch) < value(change("src/a.py")) == 1.0


def test_fixed_and_nothing_broken_is_verified() -> None:
    result = reach(facts({T + "a": "failed", T + "b": "passed"}, {T + "a": "passed", T + "b": "passed"}))
    assert (result.verdict, result.score) == ("verified", 1.0)


def test_fixed_and_something_broken_is_breaking() -> None:
    result = reach(facts({T + "a": "failed", T + "b": "passed"}, {T + "a": "passed", T + "b": "error"}))
    assert result.verdict == "breaking"
    assert result.fail_to_pass == [T + "a"]
    assert result.pass_to_fail == [T + "b"]
    assert result.score <= 0.2


def test_tests_that_were_written_over_while_they_ran_prove_nothing() -> None:
    before: dict[str, TestStatus] = {T + "a": "failed", T + "b": "passed"}
    after: dict[str, TestStatus] = {T + "a": "passed", T + "b": "passed"}
    rewriting = replace(facts(before, after), after=report(after, rewritten=["tests/test_a.py"]))
    result = reach(rewriting)
    assert result.verdict == "unverified"
    assert "wrote over test files (tests/test_a.py)" in result.summary
    # A suite that does so by itself is no sign of anything.
    habit = report(before, rewritten=["tests/test_a.py"])
    assert reach(replace(rewriting, before=habit)).verdict == "verified"


def test_a_test_that_vanished_from_an_untouched_file_is_broken() -> None:
    assert reach(facts({T + "a": "passed"}, {"tests/test_b.py::b": "passed"})).verdict == "breaking"


def test_parametrised_ids_may_change() -> None:
    assert reach(facts({T + "a[1]": "passed"}, {T + "a[2]": "passed"})).verdict == "unverified"


def test_a_test_that_is_skipped_now_is_weakened() -> None:
    result = reach(facts({T + "a": "failed", T + "b": "passed"}, {T + "a": "passed", T + "b": "skipped"}))
    assert result.verdict == "unverified"
    assert "weakens tests" in result.summary
    assert result.score <= 0.3


def test_flaky_tests_count_for_nothing() -> None:
    before: dict[str, TestStatus] = {T + "a": "failed", T + "b": "passed"}
    after: dict[str, TestStatus] = {T + "a": "passed", T + "b": "failed"}
    result = reach(facts(before, after, flaky=frozenset({T + "a", T + "b"})))
    assert result.verdict == "unverified"
    assert not result.fail_to_pass
    assert "2 tests changed between two equal runs" in result.summary


def test_exit_codes_alone_are_enough_for_a_verdict() -> None:
    red, green = report({}, 1), report({}, 0)
    assert reach(Facts(SOURCE, red, green)).verdict == "verified"
    assert reach(Facts(SOURCE, green, red)).verdict == "breaking"
    assert reach(Facts(SOURCE, green, green)).verdict == "unverified"
    assert reach(Facts(SOURCE, red, red)).verdict == "unverified"


def test_exit_codes_prove_nothing_where_the_patch_edits_the_tests() -> None:
    red, green = report({}, 1), report({}, 0)
    assert reach(Facts(WITH_TEST, red, green, originals=red)).verdict == "unverified"
    assert reach(Facts(WITH_TEST, red, green, originals=green)).verdict == "verified"
    assert reach(Facts(WITH_TEST, green, green, unfixed=red, originals=green)).verdict == "verified"


def test_results_that_are_not_believed_verify_nothing() -> None:
    result = reach(facts({T + "a": "failed"}, {T + "a": "passed"}))
    doubted = reach(Facts(SOURCE, report({T + "a": "failed"}), report({T + "a": "passed"}, note="They do not agree.")))
    assert result.verdict == "verified"
    assert doubted.verdict == "unverified"
    assert "They do not agree." in doubted.summary


def test_old_expectations_that_the_new_source_breaks_are_weakened_tests() -> None:
    before, after = report({T + "a": "passed"}), report({T + "a": "passed"})
    unfixed = report({T + "a": "failed"})
    bent = reach(Facts(WITH_TEST, before, after, unfixed=unfixed, originals=report({T + "a": "failed"})))
    assert bent.verdict == "unverified"
    assert "fail on the new source as they were" in bent.summary
    extended = reach(Facts(WITH_TEST, before, after, unfixed=unfixed, originals=report({T + "a": "passed"})))
    assert extended.verdict == "verified"


def test_a_module_that_cannot_be_collected_without_the_fix_proves_its_new_tests() -> None:
    before, unfixed = report({T + "old": "passed"}), report({"tests/test_a.py": "error"})
    after = report({T + "old": "passed", T + "new": "passed"})
    assert proving(before, unfixed, after) == {T + "new"}


@pytest.mark.parametrize(
    ("uncollected", "now"),
    [
        ("tests/test_a.py", T + "x"),
        ("tests/sub", "tests/sub/deep/test_b.py::x"),
        ("example.com/shop", "example.com/shop::TestSum"),
        ("src/a.test.js", "src/a.test.js::adds > one"),
        ("org.example.SumTest", "org.example.SumTest::adds"),
        ("core/src/main/java/org/example/Sum.java", "core/org.example.SumTest::adds"),
    ],
    ids=["pytest", "a folder", "go", "jest", "a class", "a source file"],
)
def test_what_could_not_be_collected_or_compiled_is_fixed_where_its_tests_pass(uncollected: str, now: str) -> None:
    fixed = reach(facts({uncollected: "error", T + "old": "passed"}, {now: "passed", T + "old": "passed"}))
    assert (fixed.verdict, fixed.fail_to_pass) == ("verified", [now])
    for after in ({}, {now: "skipped"}, {now: "passed", uncollected: "error"}):
        left = reach(facts({uncollected: "error", T + "old": "passed"}, {**after, T + "old": "passed"}))  # type: ignore[dict-item]
        assert left.verdict == "unverified"


def test_a_conftest_that_cannot_be_imported_is_no_measure_before_a_patch_mends_it() -> None:
    stopped = report({"tests/conftest.py": "error"}, 4, note="It cannot be imported.", not_collected=True)
    ran = report({T + "a": "passed", T + "b": "failed"})
    mended = reach(Facts(SOURCE, stopped, ran))
    assert (mended.verdict, mended.fail_to_pass, mended.measured) == ("verified", [T + "a"], True)
    left = reach(Facts(SOURCE, stopped, stopped))
    assert (left.verdict, left.measured) == ("unverified", False)
    assert "It cannot be imported." in left.summary
    assert reach(Facts(SOURCE, ran, stopped)).verdict == "breaking"


def test_a_build_that_compiles_again_does_not_count_for_the_patchs_own_tests() -> None:
    before, after = {"src/main/java/Sum.java": "error"}, {"SumTest::adds": "passed"}
    own = "src/test/java/SumTest.java"
    added = change(own, header=f"new file mode 100644\nindex {'0' * 40}..{'1' * 40}").replace(
        f"--- a/{own}", "--- /dev/null"
    )
    patch = inspect_patch(change("src/main/java/Sum.java") + added)
    assert [file.kind for file in patch.files] == ["modified", "added"]
    assert reach(facts(before, after, patch=patch)).verdict == "unverified"  # type: ignore[arg-type]


_STATUS = st.sampled_from(get_args(TestStatus))
_RESULTS = st.dictionaries(st.sampled_from([T + name for name in "abcde"]), _STATUS, max_size=5)


@given(before=_RESULTS, after=_RESULTS, unfixed=_RESULTS, originals=_RESULTS, edits=st.booleans())
def test_whatever_the_runs_say_the_bounds_hold(
    before: dict[str, TestStatus],
    after: dict[str, TestStatus],
    unfixed: dict[str, TestStatus],
    originals: dict[str, TestStatus],
    edits: bool,
) -> None:
    patch = WITH_TEST if edits else SOURCE
    extra = {"unfixed": report(unfixed), "originals": report(originals)} if edits else {}
    result = reach(Facts(patch, report(before), report(after), **extra))  # type: ignore[arg-type]
    assert 0 <= result.score <= 1
    match result.verdict:
        case "verified":
            assert result.score >= 0.7
            assert result.fail_to_pass
            assert not result.pass_to_fail
        case "breaking":
            assert result.score <= 0.2
            assert result.pass_to_fail
        case _:
            assert result.score <= 0.6
    assert not set(result.fail_to_pass) & set(result.pass_to_fail)
    if before == after and not edits:
        assert result.verdict == "unverified"
        changes = compare(report(before), report(after), ())
        assert [*changes.fail_to_pass, *changes.pass_to_fail, *changes.vanished] == []

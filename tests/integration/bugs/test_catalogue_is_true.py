"""What the catalogue says of a bug holds when the project's own tests are run."""

from pathlib import Path

import pytest

from tests.support.bugs import MakeBug, add, bug_ids, check_out, failed, names, put_hidden_tests, run_tests


@pytest.mark.parametrize("name", bug_ids())
def test_the_hidden_tests_fail_before_the_fix_and_pass_with_it(name: str, make_bug: MakeBug, tmp_path: Path) -> None:
    repository = make_bug(name)
    hidden = repository.bug.hidden.ids

    before = check_out(repository, tmp_path / "before")
    put_hidden_tests(repository, before)
    assert failed(run_tests(before, *hidden)) == names(hidden)

    after = check_out(repository, tmp_path / "after", repository.fix_patch)
    put_hidden_tests(repository, after)
    results = run_tests(after, *hidden)
    assert results.keys() == names(hidden)
    assert not failed(results)


@pytest.mark.parametrize("name", bug_ids())
def test_the_own_tests_and_our_regression_test_tell_the_fix_from_the_bug(
    name: str, make_bug: MakeBug, tmp_path: Path
) -> None:
    repository = make_bug(name)
    regression = repository.bug.regression_test

    before = check_out(repository, tmp_path / "before")
    add(before, regression)
    results = run_tests(before)
    ours = {test for test in results if test.startswith(names([regression.path]).pop().removesuffix(".py"))}
    assert failed(results) - ours == names(repository.bug.fails_before)
    assert failed(results) & ours
    assert sum(status == "passed" for status in results.values()) > 50

    after = check_out(repository, tmp_path / "after", repository.fix_patch)
    add(after, regression)
    results = run_tests(after)
    assert failed(results) == names(repository.bug.fails_before)


@pytest.mark.parametrize("name", bug_ids())
def test_a_missing_fix_proves_nothing_and_a_breaking_one_breaks_tests(
    name: str, make_bug: MakeBug, tmp_path: Path
) -> None:
    repository = make_bug(name)
    bug = repository.bug
    known = names(bug.fails_before)

    missed = check_out(repository, tmp_path / "missed")
    add(missed, bug.misses)
    assert failed(run_tests(missed)) == known
    put_hidden_tests(repository, missed)
    assert failed(run_tests(missed, *bug.hidden.ids)) == names(bug.hidden.ids)

    broken = check_out(repository, tmp_path / "broken")
    add(broken, bug.breaks)
    assert failed(run_tests(broken)) - known

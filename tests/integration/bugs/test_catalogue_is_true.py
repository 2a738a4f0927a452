"""What the catalogue says of a bug holds when the project's own tests are run."""

from pathlib import Path

import pytest

from bot.demo.bugs import load_catalogue
from tests.support.bugs import JUDGED, MakeBug, add, bug_ids, check_out, failed, names, put_hidden_tests, run_tests

MISSED = [bug.name for bug in load_catalogue() if bug.misses]
NOT_JUDGED = [bug.name for bug in load_catalogue() if bug.name not in JUDGED]
"""The own tests of the others run in `test_verdicts.py`."""
BROKEN = [bug.name for bug in load_catalogue() if bug.breaks and bug.name in NOT_JUDGED]


@pytest.mark.parametrize("name", NOT_JUDGED)
def test_the_own_tests_pass_before_and_with_the_fix(name: str, make_bug: MakeBug, tmp_path: Path) -> None:
    repository = make_bug(name)
    known = names(repository.bug.fails_before)

    results = run_tests(check_out(repository, tmp_path / "before"))
    assert failed(results) == known
    assert sum(status == "passed" for status in results.values()) > 50

    assert failed(run_tests(check_out(repository, tmp_path / "after", repository.fix_patch))) == known


@pytest.mark.parametrize("name", bug_ids())
def test_the_hidden_tests_and_our_own_test_fail_before_the_fix_and_pass_with_it(
    name: str, make_bug: MakeBug, tmp_path: Path
) -> None:
    repository = make_bug(name)
    hidden, regression = repository.bug.hidden.ids, repository.bug.regression_test

    before = check_out(repository, tmp_path / "before")
    add(before, regression)
    put_hidden_tests(repository, before)
    results = run_tests(before, *hidden, regression.path)
    assert names(hidden) <= failed(results)
    assert failed(results) - names(hidden)

    after = check_out(repository, tmp_path / "after", repository.fix_patch)
    add(after, regression)
    put_hidden_tests(repository, after)
    fixed = run_tests(after, *hidden, regression.path)
    assert fixed.keys() == results.keys()
    assert not failed(fixed)


@pytest.mark.parametrize("name", MISSED)
def test_a_change_that_misses_the_bug_changes_no_test(name: str, make_bug: MakeBug, tmp_path: Path) -> None:
    repository = make_bug(name)
    bug = repository.bug
    assert bug.misses is not None
    folder = check_out(repository, tmp_path / "missed")
    add(folder, bug.misses)
    assert not failed(run_tests(folder, *bug.hidden.files))
    put_hidden_tests(repository, folder)
    assert failed(run_tests(folder, *bug.hidden.ids)) == names(bug.hidden.ids)


@pytest.mark.parametrize("name", BROKEN)
def test_a_change_that_breaks_other_tests_does(name: str, make_bug: MakeBug, tmp_path: Path) -> None:
    repository = make_bug(name)
    bug = repository.bug
    assert bug.breaks is not None
    folder = check_out(repository, tmp_path / "broken")
    add(folder, bug.breaks)
    assert failed(run_tests(folder, *bug.hidden.files))

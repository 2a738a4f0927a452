"""What weakens the tests, and what is of the tests: a patch that does either is looked at with more care."""

import pytest

from sandbox.patch import inspect_patch
from sandbox.results import RunnerName, TestCommand
from tests.support.patches import change, new


@pytest.mark.parametrize(
    ("removed", "added", "weaker"),
    [
        (["    assert f() == 1"], ["    f()"], True),
        (["    assert f() == 1"], ["    assert f() == 2"], False),
        (["def test_a():", "    assert x"], ["pass"], True),
        (["x"], ["@pytest.mark.skip", "x"], True),
        (["x"], ["@unittest.expectedFailure"], True),
        (["x"], ["    self.skipTest('later')"], True),
        (["@pytest.mark.xfail"], ["x"], False),
        (["  expect(f()).toBe(1)"], ["  f()"], True),
        (["it('works', () => {"], ["it.skip('works', () => {"], True),
    ],
)
def test_weakened_tests_are_seen(removed: list[str], added: list[str], weaker: bool) -> None:
    assert bool(inspect_patch(change("tests/test_a.py", removed=removed, added=added)).weakens_tests) is weaker
    assert inspect_patch(change("src/a.py", removed=removed, added=added)).weakens_tests == []


@pytest.mark.parametrize(
    ("path", "removed", "added"),
    [
        ("sum.test.js", ["  assert.equal(sum(1, 2), 3);"], ["  sum(1, 2);"]),
        ("sum.test.ts", ["it('adds', () => {"], ["it.only('adds', () => {"]),
        ("sum.test.mjs", ["test('adds', () => {"], ["test('adds', { skip: true }, () => {"]),
        ("sum_test.go", ["\trequire.Equal(t, 3, Sum(1, 2))"], ["\tSum(1, 2)"]),
        ("sum_test.go", ["x"], ['\tt.Skip("later")']),
        ("tests/whole.rs", ["#[test]"], ["#[test]", "#[ignore]"]),
        ("src/test/java/SumTest.java", ["  @Test"], ["  @Test @Disabled"]),
        ("src/test/java/SumTest.java", ["    assertEquals(3, sum(1, 2));"], ["    sum(1, 2);"]),
        ("tests/check.c", ["    assert(sum(1, 2) == 3);"], ["    sum(1, 2);"]),
        ("sum.test.ts", ["it('adds', () => {"], ["it.concurrent.skip('adds', () => {"]),
        ("sum.test.ts", ["describe('sum', () => {"], ["describe.skipIf(true)('sum', () => {"]),
        ("sum.test.js", ["  expect(sum(1, 2)).toBe(3);"], ["  expect(true).toBe(true);"]),
        ("sum.test.js", ["  expect(x).toMatchInlineSnapshot(`3`);"], ["  expect(x).toMatchInlineSnapshot(`4`);"]),
        ("jest.config.js", ["x"], ["  testPathIgnorePatterns: ['sum'],"]),
        ("sum_test.go", ["x"], ["//go:build never"]),
        ("sum_test.go", ["x"], ["\tb.SkipNow()"]),
        ("tests/whole.rs", ["#[test]"], ["#[test]", "#[cfg_attr(all(), ignore)]"]),
        ("tests/whole.rs", ["    assert_eq!(sum(1, 2), 3);"], ["    assert!(true);"]),
        ("src/lib.rs", ["    #[test]"], ["    #[test]", "    #[ignore]"]),
        ("src/lib.rs", ["    #[test]", "    fn adds() {"], ["    fn adds() {"]),
        ("tests/test_a.py", ["    assert f() == 1"], ["    assert True or f() == 1"]),
        ("tests/test_a.py", ["import pytest"], ["import pytest", "pytestmark = pytest.mark.skip('later')"]),
        ("src/__snapshots__/page.test.js.snap", ["old"], ["new"]),
        ("tests/__snapshots__/test_page.ambr", ["old"], ["new"]),
    ],
)
def test_weakened_tests_of_other_languages_are_seen(path: str, removed: list[str], added: list[str]) -> None:
    assert inspect_patch(change(path, removed=removed, added=added)).weakens_tests
    assert inspect_patch(change(path, removed=["x"], added=["y"])).weakens_tests == [] or "snap" in path


def test_a_new_test_module_weakens_nothing_and_a_new_conftest_may() -> None:
    skip = ["pytest.importorskip('numpy')", "collect_ignore = ['test_a.py']"]
    assert inspect_patch(new("tests/test_new.py", skip)).weakens_tests == []
    assert inspect_patch(new("tests/conftest.py", skip)).weakens_tests


@pytest.mark.parametrize(
    "piece", ["#[cfg_attr(", "assert or ", "assert True or", "t.", "pytest.mark.", "expect(", "test.concurrent."]
)
def test_hostile_lines_do_not_stall_the_search_for_weaker_tests(piece: str) -> None:
    inspect_patch(change("tests/whole.rs", added=[piece * (400_000 // len(piece)), piece + " " * 400_000]))


@pytest.mark.parametrize(
    ("command", "path", "of_the_tests"),
    [
        (TestCommand("make test", "exit_code", "Makefile"), "Makefile", True),
        (TestCommand("make test", "exit_code", "Makefile"), "src/Makefile", False),
        (TestCommand("npm test --silent", "exit_code", "package.json"), "package.json", True),
        (TestCommand("./ci/check.sh --all", "exit_code", "the configured command"), "ci/check.sh", True),
        (TestCommand("python3 -m pytest", "pytest", "pytest.ini"), "pyproject.toml", False),
        (TestCommand("echo 'unbalanced", "exit_code", "the configured command"), "src/a.py", False),
        (None, "Makefile", False),
    ],
)
def test_what_says_how_the_tests_run_is_of_the_tests(
    command: TestCommand | None, path: str, of_the_tests: bool
) -> None:
    report = inspect_patch(change(path), None, command)
    assert bool(report.test_files) is of_the_tests
    assert report.edits_test_support is of_the_tests


@pytest.mark.parametrize(
    ("runner", "path", "line", "of_the_tests"),
    [
        ("pytest", "pyproject.toml", 'addopts = "-p forged"', True),
        ("pytest", "pyproject.toml", 'version = "1.2"', False),
        ("pytest", "docs/pyproject.toml", 'addopts = "-p forged"', False),
        ("pytest", "pytest.py", "x = 1", True),
        ("pytest", "_pytest/junitxml.py", "x = 1", True),
        ("pytest", "src/pytest/helpers.py", "x = 1", False),
        ("pytest", "sitecustomize.py", "x = 1", True),
        ("jest", "package.json", '  "jest": {"setupFiles": ["./forged.js"]}', True),
        ("vitest", "vite.config.ts", "  test: { passWithNoTests: true },", True),
        ("maven", "pom.xml", "<testFailureIgnore>true</testFailureIgnore>", True),
        ("maven", "core/pom.xml", "<skipTests>true</skipTests>", True),
        ("maven", ".mvn/maven.config", "-DskipTests", True),
        ("gradle", "core/build.gradle.kts", "tasks.test { enabled = false }", True),
        ("gradle", "core/build.gradle.kts", 'implementation("org.example:more:1")', False),
        ("cargo", "Cargo.toml", "harness = false", True),
        ("cargo", "Cargo.toml", 'serde = "1"', False),
    ],
)
def test_a_runners_configuration_is_of_the_tests(runner: RunnerName, path: str, line: str, of_the_tests: bool) -> None:
    report = inspect_patch(change(path, added=[line]), None, TestCommand(runner, runner, "test"))
    assert report.edits_test_support is of_the_tests

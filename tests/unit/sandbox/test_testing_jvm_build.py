"""Results of Maven and Gradle, read from what they really wrote, in the way in which a run in a sandbox is read.

The files in tests/support/recorded/jvm come from a project of two modules, `core` and `web`, with a class of the same
name in both and a passing, a failing, a broken, a skipped, a parameterised and a nested test, and a class whose set-up
fails. maven-junit5: `mvn -o -B -Dmaven.test.failure.ignore test` (Maven 3.8.7, Surefire 3.2.5, JUnit 5.13.4).
maven-junit4: the same with Surefire 2.22.3 and JUnit 4.13.2. gradle-junit4: `gradle --offline --no-daemon --continue
test` (Gradle 4.4.1, JUnit 4.13.2), all on Java 17. maven-stops: `mvn -o -B -fae test` on the project of maven-junit5.
The other texts are of runs in which `web`'s test or `core`'s source does not compile, a test ends its Java process, or
a plugin or a library has not been fetched. The project's folder was replaced by /workspace and the library's address by
one of example.org; the machine's own properties and the stack traces were left out.
"""

import shlex
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from sandbox.comparison import compare, proving
from sandbox.results import MAX_RESULTS, TOO_MANY, RunnerName, TestCommand, TestReport
from sandbox.testing import junit, jvm_build, jvm_reports, run_tests
from sandbox.types import CommandResult
from tests.support.local_sandbox import LocalSandbox

RECORDED = Path(__file__).parents[2] / "support" / "recorded" / "jvm"
REPORTS: Mapping[RunnerName, str] = {"maven": "target/surefire-reports", "gradle": "build/test-results/test"}
WRAPPERS: Mapping[RunnerName, str] = {"maven": "mvnw", "gradle": "gradlew"}

JUNIT4 = {
    "core/org.example.NestedTest$WhenEmpty::isZero": "passed",
    "core/org.example.SumTest::adds": "passed",
    "core/org.example.SumTest::assumes": "skipped",
    "core/org.example.SumTest::isWrong": "failed",
    "core/org.example.SumTest::waits": "skipped",
    "core/org.example.TableTest::isOne[1 is <one>]": "passed",
    "core/org.example.TableTest::isOne[2 is <two & more>]": "failed",
    "web/org.example.SumTest::adds": "passed",
    "web/org.example.SumTest::ofAnotherModule": "passed",
}


class JavaSandbox(LocalSandbox):
    """Has Java. Its tree has a wrapper that leaves a recorded run's results and says what that said."""

    def __init__(self, root: Path, runner: RunnerName) -> None:
        super().__init__(root)
        self._runner = runner
        self._lines = ["#!/bin/sh", "sleep 0.05  # as long as Java takes at the least: files have times in whole ticks"]

    def execute(self, command: str, *, timeout_s: float, trusted: bool = False) -> CommandResult:
        if command == "command -v java":
            return CommandResult("", 0, False, 0.0)
        return super().execute(command, timeout_s=timeout_s, trusted=trusted)

    def leaves(self, run: str, module: str, only: str = "*", root: str = "") -> None:
        place = f"{root or module}/{REPORTS[self._runner]}"
        self._lines.append(
            f"mkdir -p {place} && cp {shlex.quote(str(RECORDED / run / module))}/TEST-{only}.xml {place}"
        )

    def then(self, line: str) -> None:
        self._lines.append(line)

    def run(self, text: str, exit_code: int, timeout_s: float = 10, options: str = "test") -> TestReport:
        wrapper = self.workspace / WRAPPERS[self._runner]
        console = shlex.quote(str(RECORDED / f"{text}.txt"))
        wrapper.write_text("\n".join([*self._lines, f"cat {console}", f"exit {exit_code}\n"]), encoding="utf-8")
        wrapper.chmod(0o755)
        command = TestCommand(f"./{wrapper.name} {options}", self._runner, "test")
        return run_tests(self, command, timeout_s=timeout_s)


def ran(
    root: Path, runner: RunnerName, run: str, exit_code: int, text: str = "", modules: str = "core web"
) -> TestReport:
    sandbox = JavaSandbox(root, runner)
    for module in modules.split():
        sandbox.leaves(run, module)
    return sandbox.run(text or run, exit_code)


def test_maven_with_junit_5_is_read_by_module_class_and_test(tmp_path: Path) -> None:
    report = ran(tmp_path, "maven", "maven-junit5", 0)
    assert report.results == {
        "core/org.example.EachTest::one": "failed",
        "core/org.example.SetUpTest": "error",
        "core/org.example.SumTest::adds": "passed",
        "core/org.example.SumTest::again": "passed",
        "core/org.example.SumTest::equalsItself(int)[1]": "passed",
        "core/org.example.SumTest::equalsItself(int)[2]": "passed",
        "core/org.example.SumTest::isWrong": "failed",
        "core/org.example.SumTest::named(int, String)[1]": "passed",
        "core/org.example.SumTest::named(int, String)[2]": "failed",
        "core/org.example.SumTest::takesNothing": "passed",
        "core/org.example.SumTest::throwsUp": "error",
        "core/org.example.SumTest::waits": "skipped",
        "core/org.example.SumTest$WhenEmpty::isZero": "passed",
        "core/org.example.SumTest$WhenEmpty$AndNegative::isZero": "failed",
        "web/org.example.SumTest::adds": "passed",
        "web/org.example.SumTest::ofAnotherModule": "passed",
    }
    assert report.note == ""  # the exit code is 0, as we tell it to be; Maven's own counts are what agrees


def test_maven_with_junit_4_is_read_alike(tmp_path: Path) -> None:
    report = ran(tmp_path, "maven", "maven-junit4", 0)
    ends = {"core/org.example.SetUpTest": "error", "core/org.example.SumTest::throwsUp": "error"}
    assert (report.results, report.note) == (JUNIT4 | ends, "")


def test_gradle_is_read_alike_and_calls_every_error_a_failure(tmp_path: Path) -> None:
    report = ran(tmp_path, "gradle", "gradle-junit4", 1)
    ends = {"core/org.example.SetUpTest::classMethod": "failed", "core/org.example.SumTest::throwsUp": "failed"}
    assert (report.results, report.note) == (JUNIT4 | ends, "")


def test_a_build_of_one_module_has_ids_without_a_folder(tmp_path: Path) -> None:
    sandbox = JavaSandbox(tmp_path, "gradle")
    sandbox.leaves("gradle-junit4", "web", root=".")
    assert set(sandbox.run("gradle-junit4", 1).results) == {
        "org.example.SumTest::adds",
        "org.example.SumTest::ofAnotherModule",
    }


@pytest.mark.parametrize(("runner", "run"), [("maven", "maven-junit4"), ("gradle", "gradle-junit4")])
def test_results_that_were_there_before_the_run_do_not_count(tmp_path: Path, runner: RunnerName, run: str) -> None:
    sandbox = JavaSandbox(tmp_path, runner)
    earlier = sandbox.workspace / "core" / REPORTS[runner]
    earlier.mkdir(parents=True)
    for report in (RECORDED / run / "core").iterdir():
        (earlier / report.name).write_bytes(report.read_bytes())
    sandbox.leaves(run, "web")
    assert {test.split("/")[0] for test in sandbox.run(run, 1).results} == {"web"}
    nothing = JavaSandbox(tmp_path / "nothing", runner)
    assert nothing.run(run, 0).note == "The build left no test results."


def test_what_a_test_builds_has_no_results_of_its_own(tmp_path: Path) -> None:
    sandbox = JavaSandbox(tmp_path, "maven")
    sandbox.leaves("maven-junit4", "web")
    sandbox.leaves("maven-junit4", "core", root="web/target/it/sample")
    assert {test.split("::")[0] for test in sandbox.run("maven-junit4", 0).results} == {"web/org.example.SumTest"}


def test_what_lies_in_no_module_is_none_of_the_results(tmp_path: Path) -> None:
    sandbox = JavaSandbox(tmp_path, "gradle")
    for root in ("", "web/build/test-results/test/old/build/x"):
        sandbox.leaves("gradle-junit4", "web", root=root)
    sandbox.then("mkdir -p web/build/test-results/test/old && echo torn > web/build/test-results/test/old/TEST-x.xml")
    report = sandbox.run("gradle-compile", 1)
    assert {test.split("::")[0] for test in report.results if "::" in test} == {"web/org.example.SumTest"}
    assert report.note == ""


@pytest.mark.parametrize(
    ("runner", "run", "text"),
    [("maven", "maven-junit5", "maven-compile"), ("gradle", "gradle-junit4", "gradle-compile")],
)
def test_a_test_that_does_not_compile_is_an_error_by_its_file(
    tmp_path: Path, runner: RunnerName, run: str, text: str
) -> None:
    report = ran(tmp_path, runner, run, 1, text, modules="core")
    assert report.results["web/src/test/java/org/example/SumTest.java"] == "error"
    assert report.results["core/org.example.SumTest::adds"] == "passed"
    assert report.note == ""


def test_a_source_that_does_not_compile_is_all_there_is(tmp_path: Path) -> None:
    report = ran(tmp_path, "maven", "maven-junit5", 1, "maven-main", modules="")
    assert (report.results, report.note) == ({"core/src/main/java/org/example/Sum.java": "error"}, "")


def test_a_test_that_compiles_only_with_the_fix_proves_it(tmp_path: Path) -> None:
    before = ran(tmp_path / "before", "maven", "maven-junit5", 0, modules="core")
    unfixed = ran(tmp_path / "unfixed", "maven", "maven-junit5", 1, "maven-compile", modules="core")
    after = ran(tmp_path / "after", "maven", "maven-junit5", 0)
    assert proving(before, unfixed, after) == {
        "web/org.example.SumTest::adds",
        "web/org.example.SumTest::ofAnotherModule",
    }


def test_a_patch_that_does_not_compile_breaks_the_tests_behind_it(tmp_path: Path) -> None:
    before = ran(tmp_path / "before", "maven", "maven-junit5", 0)
    after = ran(tmp_path / "after", "maven", "maven-junit5", 1, "maven-main", modules="")
    assert "web/org.example.SumTest::adds" in compare(before, after, []).pass_to_fail
    assert "core/src/main/java/org/example/Sum.java" in compare(before, after, []).pass_to_fail
    assert compare(after, after, []).pass_to_fail == []


def test_an_older_error_that_comes_to_light_behind_a_mended_one_is_not_the_patchs() -> None:
    def report(*sources: str) -> TestReport:
        return TestReport("t", dict.fromkeys(sources, "error"), 1, False, 1.0, "")

    main, behind, test = "src/main/java/A.java", "src/main/java/B.java", "src/test/java/ATest.java"
    assert compare(report(main), report(behind), [], changed=[main]).pass_to_fail == []
    assert compare(report(main), report(main, behind), [], changed=[main, behind]).pass_to_fail == [behind]
    assert compare(report(main), report(test), [test], changed=[main, test]).pass_to_fail == []
    assert compare(report(), report(behind), [], changed=[main]).pass_to_fail == [behind]


def test_a_row_of_data_that_is_gone_is_missed_where_its_name_tells_no_function() -> None:
    def report(*tests: str) -> TestReport:
        return TestReport("t", dict.fromkeys(tests, "passed"), 0, False, 1.0, "")

    before, after = report("o.SumTest::[1] 3", "o.SumTest::[2] 4"), report("o.SumTest::[1] 3")
    assert compare(before, after, []).pass_to_fail == ["o.SumTest::[2] 4"]


@pytest.mark.parametrize("runner", ["maven", "gradle"])
def test_a_test_that_ends_the_java_process_leaves_a_run_that_is_not_believed(
    tmp_path: Path, runner: RunnerName
) -> None:
    sandbox = JavaSandbox(tmp_path, runner)
    if runner == "maven":
        sandbox.leaves("maven-junit5", "core", only="org.example.SetUpTest")
    else:
        sandbox.leaves("gradle-junit4", "web")
    report = sandbox.run(f"{runner}-halt", 1)
    assert len(report.results) > 0
    assert report.note == "The build broke before its tests had come to their end."


@pytest.mark.parametrize(("runner", "run"), [("maven", "maven-junit5"), ("gradle", "gradle-junit4")])
def test_a_build_that_is_killed_without_a_word_is_not_believed(tmp_path: Path, runner: RunnerName, run: str) -> None:
    sandbox = JavaSandbox(tmp_path, runner)
    sandbox.leaves(run, "core")
    sandbox.then(f"head -n 40 {shlex.quote(str(RECORDED / run))}.txt; echo Killed; exit 137")
    report = sandbox.run(run, 137)
    assert report.results["core/org.example.SumTest::isWrong"] == "failed"
    assert report.note == "The build broke before its tests had come to their end."


def test_a_build_that_stops_at_failing_tests_is_believed(tmp_path: Path) -> None:
    report = ran(tmp_path, "maven", "maven-junit5", 1, "maven-stops", modules="core")
    assert report.results["core/org.example.SumTest::isWrong"] == "failed"
    assert report.note == ""


@pytest.mark.parametrize("runner", ["maven", "gradle"])
def test_what_was_not_fetched_is_said(tmp_path: Path, runner: RunnerName) -> None:
    report = JavaSandbox(tmp_path, runner).run(f"{runner}-unfetched", 1)
    assert report.note == "The build needs something that its set-up has not fetched."


def test_a_run_that_is_killed_keeps_what_was_whole_by_then(tmp_path: Path) -> None:
    sandbox = JavaSandbox(tmp_path, "gradle")
    sandbox.leaves("gradle-junit4", "web")
    sandbox.then("mkdir -p core/build/test-results/test")
    sandbox.then("echo '<testsuite><testcase' > core/build/test-results/test/TEST-org.example.SumTest.xml; sleep 60")
    report = sandbox.run("gradle-junit4", 1, timeout_s=1)
    assert set(report.results) == {"web/org.example.SumTest::adds", "web/org.example.SumTest::ofAnotherModule"}
    assert report.note == "The tests ran out of time."


def test_results_that_contradict_the_build_are_not_believed(tmp_path: Path) -> None:
    assert "do not agree" in ran(tmp_path / "a", "gradle", "gradle-junit4", 0).note
    assert "counts" in ran(tmp_path / "b", "maven", "maven-junit5", 0, modules="web").note
    assert "No test failed" in ran(tmp_path / "c", "gradle", "gradle-junit4", 1, modules="web").note


def test_a_maven_that_shows_no_counts_is_believed_where_it_is_told_to_end_well(tmp_path: Path) -> None:
    notes: list[str] = []
    for options in ("test", "-Dmaven.test.failure.ignore test"):
        sandbox = JavaSandbox(tmp_path / str(len(notes)), "maven")
        sandbox.leaves("maven-junit5", "core")
        sandbox.then("exit 0")
        notes.append(sandbox.run("maven-junit5", 0, options=options).note)
    assert notes == ["The exit code 0 and 6 failed tests in the results do not agree.", ""]


def test_counts_that_a_test_prints_are_not_mavens_own(tmp_path: Path) -> None:
    sandbox = JavaSandbox(tmp_path, "maven")
    sandbox.leaves("maven-junit5", "web")
    sandbox.then("echo 'Tests run: 3, Failures: 1, Errors: 0, Skipped: 0'")
    sandbox.then("echo '[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 0'; exit 0")
    assert sandbox.run("maven-junit5", 0).note == ""


def test_gradle_may_indent_what_does_not_compile_below_its_reason() -> None:
    path = "/workspace/core/src/main/java/o/Sum.java"
    output = f"> Compilation failed; see the compiler output below.\n  {path}:3: error: cannot find symbol\n      x\n"
    assert jvm_build.not_compiled(output) == {"core/src/main/java/o/Sum.java": "error"}
    started = time.monotonic()
    for hostile in (" " * 200_000, "\t \n" * 100_000, ":a" * 100_000, f"  {path}:" * 20_000):
        assert jvm_build.not_compiled(hostile) == {}
    assert time.monotonic() - started < 5


def test_a_document_type_is_text_in_a_tests_output_and_refused_elsewhere() -> None:
    case = '<testcase classname="a.PageTest" name="shows"/>'
    printed = f"<testsuite>{case}<system-out><![CDATA[<!DOCTYPE html>]]></system-out></testsuite>"
    assert junit.parse(printed.encode()) == {"a.PageTest::shows": "passed"}
    with pytest.raises(junit.JunitError, match="document type"):
        junit.parse(b'<!DOCTYPE x [<!ENTITY a "b">]><testsuite/>')


@pytest.mark.parametrize("encoding", ["Shift_JIS", "utf-7", "UTF-16", "idna", "hex", "zip", "nonsense"])
def test_results_are_utf_8_whatever_encoding_they_name(encoding: str) -> None:
    case = '<testcase classname="a.B" name="größer"/>'
    content = f'<?xml version="1.0" encoding="{encoding}"?><testsuite>{case}</testsuite>'.encode()
    assert junit.parse(content) == {"a.B::größer": "passed"}
    with pytest.raises(junit.JunitError, match="document type"):
        junit.parse(content.replace(b"<testsuite>", b"<!DOCTYPE x><testsuite>"))


CASE = "<testcase classname='a.A' name='{n}'/>"
WRITE = """python3 - <<'END'
import os
os.makedirs("core/target/surefire-reports")
with open("core/target/surefire-reports/TEST-a.A.xml", "w") as report:
    report.write("<testsuite>" + "".join(f"{what}" for n in range({number})) + "</testsuite>")
for n in range({links}):
    os.makedirs(f"m{{n}}/target/surefire-reports")
    os.link(report.name, f"m{{n}}/target/surefire-reports/TEST-a.A.xml")
END"""


def made(tmp_path: Path, what: str, number: int, links: int = 0, then: str = "") -> TestReport:
    sandbox = JavaSandbox(tmp_path, "maven")
    sandbox.then(WRITE.format(what=what, number=number, links=links))
    sandbox.then(then)
    return sandbox.run("maven-junit5", 0, timeout_s=60)


def test_a_report_that_is_too_large_is_called_so_and_not_torn(tmp_path: Path) -> None:
    report = made(tmp_path, "<a>12345678</a>", jvm_reports.MAX_REPORT // 15)
    path = "./core/target/surefire-reports/TEST-a.A.xml"
    assert (report.results, report.note) == ({}, f"The results in {path} are too large: more than 30 MB.")


def test_one_large_report_in_many_modules_is_read_up_to_a_limit_for_all(tmp_path: Path) -> None:
    report = made(tmp_path, "<a>{n:0100000}</a>", 290, links=7)
    assert (report.results, report.note) == ({}, "The build's results are too large: more than 200 MB in all.")


def test_one_report_in_many_modules_has_no_more_results_than_a_run_may_have(tmp_path: Path) -> None:
    unread = "echo torn > m9/target/surefire-reports/TEST-a.Z.xml"
    report = made(tmp_path, CASE, MAX_RESULTS // 10 + 1, links=10, then=unread)
    assert (report.results, report.note) == ({}, TOO_MANY)


def test_more_reports_than_can_be_read_are_not_cut_in_silence(tmp_path: Path) -> None:
    report = made(tmp_path, CASE, 1, links=jvm_reports.MAX_REPORTS)
    assert (report.results, report.note) == ({}, "The build left more reports than can be read (5,000).")

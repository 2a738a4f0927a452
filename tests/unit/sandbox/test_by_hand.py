"""The commands by which a reviewer checks a verdict: for each runner, and run for real."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.by_hand import by_hand, only
from sandbox.evidence import Evidence
from sandbox.results import RunnerName, TestCommand, VerificationResult
from sandbox.testing.discovery import PYTEST, UNITTEST
from templates import render
from tests.unit.bot.test_texts import view
from workers.verdicts import verification_row

_VERIFIED = VerificationResult("verified", 1.0, (), "Fixed.", None, None)


@pytest.mark.parametrize(
    ("runner", "command", "tests", "line"),
    [
        ("pytest", PYTEST, ["t/test_a.py::test_x[a b]"], f"{PYTEST} 't/test_a.py::test_x[a b]'"),
        ("pytest", PYTEST, ["-x.py::test"], f"{PYTEST} ./-x.py::test"),
        ("pytest", PYTEST, ["t/test_a.py::test_x[$(id)]"], f"{PYTEST} 't/test_a.py::test_x[$(id)]'"),
        ("pytest", "make lint; pytest", ["t/test_a.py::test_x"], "make lint; pytest"),
        ("pytest", PYTEST, ["package.Class::test"], PYTEST),
        ("unittest", UNITTEST, ["tests.test_a.A.test_x"], "python3 -m unittest -v tests.test_a.A.test_x"),
        ("unittest", "python3 -m unittest -s tests", ["test_a.A.test_x"], "python3 -m unittest -s tests"),
        ("go", "go test -json ./...", ["example.org/a::TestT/one"], "go test -run '^(TestT)$' example.org/a"),
        (
            "cargo",
            "cargo test --no-fail-fast",
            ["src/lib.rs::tests::adds"],
            "cargo test --no-fail-fast -- --exact tests::adds",
        ),
        (
            "jest",
            "npx --no-install jest",
            ["a.test.js::sum > adds (1)"],
            r"npx --no-install jest a.test.js -t '^(sum\ adds\ \(1\))$'",
        ),
        ("node", "node --test x", ["sum > adds"], "node --test --test-name-pattern=adds x"),
        (
            "maven",
            "mvn -o -Dmaven.repo.local=/opt/venv/m2 test",
            ["a.SumTest::adds"],
            "mvn test '-Dtest=a.SumTest#adds'",
        ),
        (
            "maven",
            "mvn -o -Dmaven.repo.local=/opt/venv/m2 test",
            ["a/b/o.SumTest$Empty::rows(int, String)[1]", "web/o.SumTest::adds", "web/o.SetUpTest"],
            "mvn test -pl a/b,web -am -DfailIfNoTests=false -Dsurefire.failIfNoSpecifiedTests=false "
            "'-Dtest=o.SumTest$Empty#rows*,o.SumTest#adds,o.SetUpTest'",
        ),
        ("maven", "mvn -o -Dmaven.repo.local=/opt/venv/m2 test", ["not a test"], "mvn test"),
        ("maven", "mvn -o -Dmaven.repo.local=/opt/venv/m2 test", ["-x/o.SumTest::adds"], "mvn test"),
        ("maven", "./mvnw verify", ["core/src/main/java/o/Sum.java"], "./mvnw verify"),
        (
            "gradle",
            "./gradlew --offline --no-daemon --continue test",
            ["o.SumTest::adds"],
            "./gradlew :test --tests o.SumTest.adds",
        ),
        ("gradle", "bash ./gradlew --offline test", ["o.SumTest::adds"], "bash ./gradlew :test --tests o.SumTest.adds"),
        ("gradle", "bash ./gradlew --offline test", ["not a test"], "bash ./gradlew test"),
        (
            "gradle",
            "gradle --offline --no-daemon --continue test",
            ["a/b/o.SumTest::rows[$(id)]", "web/o.SumTest::takes nothing", "web/o.SetUpTest"],
            "gradle :a:b:test --tests 'o.SumTest.rows*' :web:test --tests 'o.SumTest.takes*' --tests o.SetUpTest",
        ),
        ("gradle", "gradle --offline --no-daemon --continue test", ["not a test"], "gradle test"),
        ("exit_code", "make test", ["(all tests)"], "make test"),
    ],
)
def test_each_runner_is_told_which_tests_to_run(runner: RunnerName, command: str, tests: list[str], line: str) -> None:
    assert only(TestCommand(command, runner, "test"), tests) == line


def test_names_with_control_characters_stand_in_no_command() -> None:
    command = TestCommand(PYTEST, "pytest", "test")
    assert only(command, ["tests/test_a.py::test[\n$(id)]"]) == PYTEST
    assert by_hand(command, (), proofs=["a.py::t"], broken=(), own=["a\n.py", "a.py"]).own_tests == ["a.py"]


def test_what_only_the_sandbox_can_run_is_no_advice() -> None:
    inside = "if command -v npm > /dev/null; then npm ci && mv node_modules /opt/venv/node_modules; else echo; fi"
    node = by_hand(TestCommand("node --test", "node", "test"), [inside], proofs=(), broken=(), own=())
    assert node.setup == ["npm ci"]
    python = by_hand(
        TestCommand(PYTEST, "pytest", "test"), ["python -m pip install -e ."], proofs=(), broken=(), own=()
    )
    assert python.setup == [
        "python3 -m venv .venv && . .venv/bin/activate",
        "python -m pip install -e .",
        "python -m pip install pytest",
    ]


def test_the_commands_of_a_pull_request_show_the_bug_and_the_fix(tmp_path: Path) -> None:
    """A stranger's branch is checked with nothing but what the PR says, set-up aside."""
    origin, clone = tmp_path / "origin", tmp_path / "clone"
    origin.mkdir()

    def git(*arguments: str) -> str:
        line = ["git", "-c", "user.name=t", "-c", "user.email=t@t", *arguments]
        return subprocess.run(line, cwd=origin, check=True, capture_output=True, text=True).stdout.strip()

    def commit(files: dict[str, str]) -> str:
        for name, content in files.items():
            (origin / name).write_text(content, encoding="utf-8")
        git("add", "-A")
        git("commit", "-q", "-m", "x")
        return git("rev-parse", "HEAD")

    git("init", "-q", "-b", "main")
    base = commit({"stats.py": "def mean(n):\n    return 1\n", "test_old.py": "def test_old():\n    pass\n"})
    branch = "fix;touch${IFS}stolen"  # a name that git takes
    git("checkout", "-q", "-b", branch)
    test = "from stats import mean\n\n\ndef test_mean():\n    assert mean([3]) == 3\n"
    head = commit({"stats.py": "def mean(n):\n    return sum(n) / len(n)\n", "test_mean.py": test})
    git("checkout", "-q", "main")
    subprocess.run(["git", "clone", "-q", str(origin), str(clone)], check=True)

    commands = by_hand(
        TestCommand(f"{sys.executable} -m pytest -q -p no:cacheprovider", "pytest", "test"),
        (),
        proofs=["test_mean.py::test_mean"],
        broken=(),
        own=["test_mean.py"],
    )
    evidence = Evidence(reproductions=["test_mean.py::test_mean"], by_hand=commands)
    result = VerificationResult("verified", 1.0, (), "Fixed.", None, None, evidence=evidence)
    shown = view(task={"branch": branch, "base_sha": base, "head_sha": head})
    shown.published.verification.tests = verification_row(2, result).tests
    body = render("pulls/body.md.j2", view=shown)
    script = re.search(r"```sh\n(.*?)\n```", body, re.DOTALL)
    assert script is not None

    lines = [line for line in script[1].splitlines() if not re.match("python3 -m venv|python -m pip", line)]
    done = subprocess.run(
        ["bash", "-c", "\n".join(lines)],
        cwd=clone,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    ends = re.findall(r"^\d+ .*?(?= in )", done.stdout, re.MULTILINE)
    assert ends == ["1 failed", "1 passed", "2 passed"], done.stdout + done.stderr
    assert not list(tmp_path.rglob("stolen"))

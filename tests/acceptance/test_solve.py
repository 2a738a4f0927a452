"""`acrouter solve` as a user runs it: a local repository, a text file, a patch or a branch."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bot.demo.bugs import find_bug
from bot.demo.scripted.models import SKILLED, write_models_file
from tests.support.bugs import SCRIPTED_KEY, MakeBug
from tests.support.held_models import HeldModels
from tests.support.installation import ROOT, containers_of

pytestmark = [pytest.mark.docker, pytest.mark.timeout(300)]

BUG = "xmltodict-none-attribute"


@dataclass(frozen=True)
class Shell:
    """A terminal in a folder with a repository, a task and a pool."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def repository(self) -> Path:
        return self.folder / "xmltodict"

    def solve(
        self, *arguments: str, environment: Mapping[str, str] | None = None, stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        given = arguments if "--task" in arguments else ("--task", "issue.md", *arguments)
        given = given if "--repo" in given else ("--repo", "xmltodict", *given)
        return subprocess.run(
            self.command(*given),
            cwd=self.folder,
            env=self.environment | dict(environment or {}),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )

    def containers(self) -> list[str]:
        return containers_of(f"sqlite:///{self.folder / '.acrouter' / 'acrouter.sqlite3'}")

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "bot", "solve", *arguments]

    def git(self, *arguments: str, stdin: str = "") -> str:
        command = ["git", "-C", str(self.repository), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, input=stdin).stdout


@pytest.fixture(scope="module")
def endpoint(make_bug: MakeBug) -> Iterator[HeldModels]:
    with HeldModels([make_bug(BUG)], api_key=SCRIPTED_KEY) as models:
        yield models


@pytest.fixture
def shell(tmp_path: Path, make_bug: MakeBug, endpoint: HeldModels) -> Shell:
    bug = find_bug(BUG)
    (tmp_path / "issue.md").write_text(f"# {bug.title}\n\n{bug.issue}\n")
    write_models_file(tmp_path / "models.yaml", api_base=endpoint.api_base, api_key_env="SCRIPTED_KEY", only=SKILLED)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ACROUTER_")}
    made = Shell(
        tmp_path,
        environment | {"PYTHONPATH": str(ROOT), "SCRIPTED_KEY": SCRIPTED_KEY, "ACROUTER_SANDBOX": "docker"},
    )
    subprocess.run(["git", "clone", "--quiet", str(make_bug(BUG).git_dir), str(made.repository)], check=True)
    return made


def test_the_patch_on_stdout_applies_and_nothing_else_is_printed_there(shell: Shell) -> None:
    (shell.repository / "README.md").write_text("Not committed yet.\n")
    done = shell.solve("--model", "scripted-medium")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("diff --git ")
    assert "1 file with uncommitted changes: not part of the task" in " ".join(done.stderr.split())
    assert "scripted-medium" in done.stderr
    assert "passes with it" in done.stderr
    assert "Spent: $" in done.stderr
    assert "README.md" not in done.stdout
    shell.git("apply", "--check", "-", stdin=done.stdout)
    assert shell.git("status", "--porcelain").split() == ["M", "README.md"], "the person's own tree stays as it was"


def test_the_patch_on_a_branch(shell: Shell) -> None:
    head = shell.git("rev-parse", "HEAD")
    done = shell.solve("--model", "scripted-medium", "--branch", "acrouter/none-attributes", "--budget", "10")
    assert done.returncode == 0, done.stderr
    assert "at most $2.00 are spent. ACROUTER_TASK_BUDGET_USD raises it." in " ".join(done.stderr.split())
    assert done.stdout == ""
    assert shell.git("rev-parse", "HEAD") == head
    assert shell.git("rev-parse", "acrouter/none-attributes~1") == head
    assert "xmltodict.py" in shell.git("diff", "--name-only", "HEAD", "acrouter/none-attributes")
    assert find_bug(BUG).title in shell.git("log", "-1", "--format=%s", "acrouter/none-attributes")
    assert shell.git("status", "--porcelain") == ""

    again = shell.solve("--branch", "acrouter/none-attributes")
    assert _sentence(again) == (
        f"The branch 'acrouter/none-attributes' is in {shell.repository} already. Name another one."
    )


def test_a_repository_below_a_folder_with_a_space_and_an_umlaut(shell: Shell) -> None:
    place = shell.folder / "Meine Projekte" / "für acrouter"
    place.parent.mkdir()
    shell.repository.rename(place)
    done = shell.solve("--repo", str(place), "--model", "scripted-medium")
    assert done.returncode == 0, done.stderr
    applied = subprocess.run(["git", "-C", str(place), "apply"], input=done.stdout, text=True, check=False)
    assert applied.returncode == 0


def test_in_the_repository_itself_it_leaves_nothing_to_commit(shell: Shell) -> None:
    done = subprocess.run(
        shell.command("--repo", ".", "--task", "../issue.md", "--model", "scripted-medium"),
        cwd=shell.repository,
        env=shell.environment | {"ACROUTER_MODELS_FILE": "../models.yaml"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (shell.repository / ".acrouter" / "acrouter.sqlite3").is_file()
    assert "uncommitted" not in done.stderr
    assert shell.git("status", "--porcelain") == ""


def test_a_dry_run_shows_the_decision_and_calls_no_model(shell: Shell, endpoint: HeldModels) -> None:
    calls = len(endpoint.calls)
    done = shell.solve("--dry-run", "--task", "-", stdin="Add a function\n\nIt returns 1.\n")
    assert done.returncode == 0, done.stderr
    for name in SKILLED:
        assert name in done.stderr
    assert "expected cost" in done.stderr
    assert len(endpoint.calls) == calls


def test_a_dry_run_keeps_to_the_budget_that_the_task_would_have(shell: Shell) -> None:
    done = shell.solve("--dry-run", "--budget", "0.0001", "--task", "-", stdin="Add a function\n\nIt returns 1.\n")
    assert done.returncode == 2
    assert "No model may be used." in " ".join(done.stderr.split())
    assert "the budget leaves $0.0001" in " ".join(done.stderr.split())


def test_a_model_that_finds_nothing_ends_with_1_and_no_patch(shell: Shell) -> None:
    done = shell.solve("--model", "scripted-medium", "--task", "-", stdin="Paint it blue\n")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "changes nothing" in " ".join(done.stderr.split())


def test_wrong_input_gets_one_clear_sentence(shell: Shell) -> None:
    (shell.folder / "empty.md").write_text(" \n")
    (shell.folder / "binary").write_bytes(b"\x7fELF\0\1")
    (shell.folder / "new").mkdir()
    subprocess.run(["git", "init", "--quiet", str(shell.folder / "new")], check=True)
    expected = {
        ("--repo", "."): f"{shell.folder} is not a git repository; name the folder that holds `.git`.",
        ("--repo", "new"): f"{shell.folder / 'new'} has no commit yet. Commit something first.",
        (
            "--repo",
            "nowhere",
        ): f"{shell.folder / 'nowhere'} is not a git repository; name the folder that holds `.git`.",
        ("--task", "nowhere.md"): (
            "--task: nowhere.md is no file. Give the path of a text file, or - for standard input."
        ),
        (
            "--repo",
            "issue.md",
        ): f"{shell.folder / 'issue.md'} is not a git repository; name the folder that holds `.git`.",
        ("--task", "binary"): "--task: binary is no text. Give a file of plain text.",
        ("--task", "empty.md"): "--task: empty.md is empty. Write what should be done; the first line is the title.",
        ("--model", "scripted-larg"): (
            "unknown model 'scripted-larg'. Did you mean 'scripted-large'? "
            "The pool has: scripted-small, scripted-medium, scripted-large."
        ),
        ("--branch", "a..b"): "'a..b' cannot be a branch's name.",
        ("--branch", "HEAD"): "'HEAD' cannot be a branch's name.",
        ("--budget", "0"): "--budget: must be an amount of US dollars, more than 0.",
        ("--budget", "-1"): "--budget: must be an amount of US dollars, more than 0.",
        ("--budget", "inf"): "--budget: must be an amount of US dollars, more than 0.",
    }
    for arguments, sentence in expected.items():
        assert _sentence(shell.solve(*arguments)) == sentence


def test_a_missing_key_is_named_before_anything_is_done(shell: Shell) -> None:
    done = shell.solve("--model", "scripted-large", environment={"SCRIPTED_KEY": ""})
    assert _sentence(done) == "model 'scripted-large': the environment variable SCRIPTED_KEY is not set."
    all_missing = shell.solve(environment={"SCRIPTED_KEY": ""})
    assert all_missing.returncode == 2
    assert all_missing.stderr.count("SCRIPTED_KEY is not set") == len(SKILLED)


def test_a_missing_pool_says_how_to_make_one(shell: Shell) -> None:
    (shell.folder / "models.yaml").unlink()
    sentence = _sentence(shell.solve())
    assert sentence.startswith("models.yaml: cannot be read")
    assert "models.example.yaml" in sentence


def test_a_command_that_was_interrupted_leaves_no_container_and_does_not_block_the_next(
    shell: Shell, endpoint: HeldModels
) -> None:
    arguments = ("--repo", "xmltodict", "--task", "issue.md", "--model", "scripted-medium")
    with endpoint.held() as hold:
        # A shell lets what it runs in the background ignore this signal, and all that it starts in turn.
        with subprocess.Popen(
            ["env", "--default-signal=INT", *shell.command(*arguments)],
            cwd=shell.folder,
            env=shell.environment,
            stderr=subprocess.PIPE,
        ) as process:
            hold.wait_until_reached()
            assert shell.containers()
            process.send_signal(signal.SIGINT)
            hold.release()
            _, said = process.communicate(timeout=60)
        assert process.returncode not in (0, -signal.SIGINT), said
    assert b"Traceback" not in said
    assert shell.containers() == []
    again = shell.solve("--model", "scripted-medium")
    assert again.returncode == 0, again.stderr


def _sentence(done: subprocess.CompletedProcess[str]) -> str:
    """Return what a refused command said, after making sure that it said nothing else."""
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    name, _, sentence = line.partition("acrouter: ")
    assert name == ""
    return sentence

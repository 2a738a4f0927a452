"""However a task ends, its target says how and what to do next, and nothing is left behind.

One installation serves all stories; each has a repository of its own.
"""

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bot.demo.scripted.models import SCRIPTED_MODELS
from store.states import AttemptState, OutcomeKind, TaskState
from store.tables import Attempt, MemoryEntry, Task
from tests.acceptance.conftest import CONFIG, installed, issue_of, served_by
from tests.support.bugs import SCRIPTED_KEY, MakeBug
from tests.support.github.server import GitHubServer
from tests.support.held_models import HeldModels
from tests.support.installation import Installation

pytestmark = [pytest.mark.docker, pytest.mark.postgres, pytest.mark.redis, pytest.mark.node, pytest.mark.timeout(300)]

QUICK = "xmltodict-none-attribute"
"""Every skilled model solves it."""
STEP_LIMIT = 8


@pytest.fixture(scope="module")
def github(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitHubServer]:
    with GitHubServer(tmp_path_factory.mktemp("github")) as server:
        yield server


@pytest.fixture(scope="module")
def endpoint(make_bug: MakeBug) -> Iterator[HeldModels]:
    bugs = [make_bug(name) for name in (QUICK, "cachetools-shallow-copy")]
    with HeldModels(bugs, api_key=SCRIPTED_KEY) as models:
        yield models


@pytest.fixture(scope="module")
def installation(
    tmp_path_factory: pytest.TempPathFactory,
    postgres_base: str,
    redis_url: str,
    github: GitHubServer,
    endpoint: HeldModels,
) -> Iterator[Installation]:
    settings = served_by(postgres_base, redis_url) | {"ACROUTER_STEP_LIMIT": str(STEP_LIMIT)}
    folder = tmp_path_factory.mktemp("endings") / "acrouter"
    names = tuple(model.name for model in SCRIPTED_MODELS)
    with installed(folder, github, endpoint, names, settings) as made:
        made.start_web()
        made.start_beat()
        made.start_worker()
        yield made


@dataclass(frozen=True)
class Story:
    """One issue in a repository of its own, and the task that works on it."""

    installation: Installation
    github: GitHubServer
    repository: str
    issue: int

    def command(self, words: str) -> None:
        self.github.comment(self.issue, words, by="maintainer", repository=self.repository)

    def begin(self, words: str) -> None:
        """Give the command that starts the task and wait until it is there."""
        before = len(self.installation.tasks())
        self.command(words)
        self.installation.wait_for(lambda: len(self.installation.tasks()) > before, "a task")

    def ends(self) -> Task:
        return self.installation.wait_until_told(self.number)

    @property
    def number(self) -> int:
        """The newest task's number in the installation: the stories are told one after the other."""
        return len(self.installation.tasks())

    def told(self, *words: str) -> str:
        """Return the one status comment of the newest task after making sure that it holds these words."""
        marker = f"acrouter:task={self.installation.task(self.number).id} "
        comments = self.github.comments(self.issue, repository=self.repository)
        [body] = [str(comment["body"]) for comment in comments if marker in comment["body"]]
        shown = body.replace("\\", "")
        for word in words:
            assert word in shown, body
        return shown

    def labels(self) -> set[str]:
        return self.github.labels(self.issue, repository=self.repository)

    def attempts(self) -> list[Attempt]:
        return list(self.installation.attempts(self.number))

    def memory(self) -> list[MemoryEntry]:
        keys = {f"attempt:{attempt.id}" for attempt in self.attempts()}
        return [entry for entry in self.installation.memory() if entry.key in keys]

    def pulls(self) -> list[Any]:
        return self.github.pull_requests(repository=self.repository)

    def leaves_nothing(self) -> None:
        self.installation.assert_the_ledger_adds_up()
        assert self.installation.containers() == []


Tell = Callable[..., Story]


@pytest.fixture
def tell(installation: Installation, github: GitHubServer, make_bug: MakeBug) -> Tell:
    """Open a bug's issue in a new repository that holds the bug, configured and changed as said."""

    def start(name: str, bug: str = QUICK, config: str = CONFIG, files: dict[str, str | None] | None = None) -> Story:
        repository = f"acme/{name}"
        github.create_repository(repository, make_bug(bug).git_dir)
        github.push("main", {".acrouter.yml": config, **(files or {})}, message="Configure", repository=repository)
        issue = github.open_issue(*issue_of(bug), repository=repository)
        return Story(installation, github, repository, issue)

    return start


def test_an_empty_patch_is_said_to_be_one(tell: Tell) -> None:
    story = tell("empty")
    story.begin("/route fix model=scripted-empty")
    task = story.ends()
    assert task.state is TaskState.NO_FIX
    story.told("No fix found", "scripted-empty", "changes nothing", "/route retry")
    assert story.labels() == {"acrouter:failed"}
    assert story.pulls() == []
    story.leaves_nothing()


def test_a_patch_that_breaks_other_tests_is_not_published(tell: Tell) -> None:
    story = tell("breaking", bug="cachetools-shallow-copy")
    story.begin("/route fix model=scripted-small")
    task = story.ends()
    assert task.state is TaskState.NO_FIX, task.reason
    story.told("No fix found", "breaks other tests", "passed before", "/route retry")
    assert story.labels() == {"acrouter:failed"}
    assert story.pulls() == []
    [entry] = story.memory()
    assert entry.score < 0.5
    story.leaves_nothing()


def test_an_agent_that_runs_out_of_steps_is_stopped(tell: Tell) -> None:
    story = tell("loop")
    story.begin("/route fix model=scripted-loop")
    task = story.ends()
    assert task.state is TaskState.NO_FIX
    [attempt] = story.attempts()
    assert attempt.steps == STEP_LIMIT
    story.told("No fix found", f"ran out of steps after {STEP_LIMIT} steps", "/route retry")
    assert story.labels() == {"acrouter:failed"}
    story.leaves_nothing()


def test_a_model_that_answers_garbage_is_given_up(tell: Tell) -> None:
    story = tell("garbage")
    story.begin("/route fix model=scripted-garbage")
    task = story.ends()
    assert task.state is TaskState.NO_FIX
    [attempt] = story.attempts()
    assert attempt.steps < STEP_LIMIT
    assert attempt.cost_usd > 0, "useless answers are paid for too"
    body = story.told("No fix found", "answers without a command", "/route retry")
    assert "lorem ipsum" not in body
    story.leaves_nothing()


def test_a_dead_endpoint_is_named_and_says_nothing_about_the_model(tell: Tell) -> None:
    story = tell("dead")
    story.begin("/route fix model=scripted-dead")
    task = story.ends()
    assert task.state is TaskState.FAILED
    [attempt] = story.attempts()
    assert attempt.state is AttemptState.FAILED
    story.told("Failed", "No model could be reached", "scripted-dead", "could not be used", "500", "/route retry")
    assert story.labels() == {"acrouter:failed"}
    assert story.memory() == []
    story.leaves_nothing()


def test_another_model_takes_over_from_a_dead_one(tell: Tell, endpoint: HeldModels) -> None:
    story = tell("dead-then-alive", config=CONFIG + "models:\n  allow: [scripted-medium, scripted-large]\n")
    with endpoint.first_is_dead():
        story.begin("/route fix")
        task = story.ends()
    assert task.state is TaskState.PUBLISHED, task.reason
    dead, alive = story.attempts()
    assert (dead.state, alive.state) == (AttemptState.FAILED, AttemptState.VERIFIED)
    assert dead.model != alive.model
    assert [entry.model for entry in story.memory()] == [alive.model]
    story.told("could not be used", task.pr_url)
    assert story.labels() == {"acrouter:review"}
    story.leaves_nothing()


def test_a_repository_without_tests_gets_a_draft_that_says_so(tell: Tell, make_bug: MakeBug) -> None:
    tracked = make_bug(QUICK).git_dir
    story = tell("untested", files=dict.fromkeys(_all_but(tracked, "xmltodict.py")))
    story.begin("/route fix model=scripted-medium")
    task = story.ends()
    assert task.state is TaskState.PUBLISHED, task.reason
    [pull] = story.pulls()
    assert pull["draft"] is True
    assert "no tests that could be found" in pull["body"]
    story.told(task.pr_url, "no tests that could be found")
    [check] = story.github.check_runs(task.head_sha, repository=story.repository)
    assert check["conclusion"] == "neutral"
    story.leaves_nothing()


def test_a_budget_that_pays_for_nothing_is_said_to_be_too_small(tell: Tell) -> None:
    story = tell("poor", config=f"{CONFIG}budget_usd: 0.01\n")
    story.begin("/route fix model=scripted-large budget=0.02")
    task = story.ends()
    history = "\n".join(story.installation.history(story.number))
    assert "Its budget is $0.0100 in place of $0.0200, by budget_usd in .acrouter.yml." in history
    assert task.state in (TaskState.NO_FIX, TaskState.REFUSED)
    story.told("budget", "$0.01", "/route retry")
    assert story.labels() == {"acrouter:failed"}
    assert story.memory() == [], "the model had no chance"
    assert all(attempt.cost_usd <= 0.01 for attempt in story.attempts())
    story.leaves_nothing()


def test_route_stop_ends_a_set_up_at_once(tell: Tell) -> None:
    story = tell("waiting", config=f"{CONFIG}setup: ['sleep 500']\n")
    story.begin("/route fix")
    story.installation.wait_for(story.installation.containers, "the set-up's sandbox")
    story.command("/route stop")
    task = story.ends()
    assert task.state is TaskState.STOPPED
    story.told("Stopped by maintainer", "/route retry")
    assert story.attempts() == []
    story.leaves_nothing()


def test_route_stop_ends_a_running_task(tell: Tell, endpoint: HeldModels) -> None:
    story = tell("stopped")
    with endpoint.held() as hold:
        story.begin("/route fix model=scripted-medium")
        hold.wait_until_reached()
        story.command("/route stop")
        story.installation.wait_for(
            lambda: story.installation.task(story.number).stop_requested_by, "the request to stop"
        )
    task = story.ends()
    assert task.state is TaskState.STOPPED
    story.told("Stopped", "Stopped by maintainer", "/route retry")
    assert story.labels() == set()
    assert story.pulls() == []
    assert story.memory() == [], "a model that was stopped had no chance"
    story.leaves_nothing()


def test_a_mistake_in_the_configuration_is_told_with_its_line(tell: Tell) -> None:
    story = tell("mistaken", config="test: pytest\nbuget_usd: 3\n")
    story.begin("/route fix")
    task = story.ends()
    assert task.state is TaskState.REFUSED
    story.told("Not started", "line 2", "budget_usd", "/route retry")
    assert story.labels() == {"acrouter:failed"}
    assert story.attempts() == []
    story.leaves_nothing()


def test_a_setup_that_fails_is_told_with_its_last_words(tell: Tell) -> None:
    story = tell("unprepared", config=CONFIG + "setup: echo the compiler is missing && exit 3\n")
    story.begin("/route fix")
    task = story.ends()
    assert task.state is TaskState.FAILED
    story.told("Failed", "the compiler is missing", "`setup` in .acrouter.yml", "/route retry")
    assert story.labels() == {"acrouter:failed"}
    assert story.attempts() == []
    story.leaves_nothing()


def test_an_issue_that_is_closed_in_mid_run_gets_no_pr(tell: Tell, endpoint: HeldModels) -> None:
    story = tell("closed")
    with endpoint.held() as hold:
        story.begin("/route fix model=scripted-medium")
        hold.wait_until_reached()
        story.github.close_issue(story.issue, repository=story.repository)
        story.github.settle()
    task = story.ends()
    assert task.state is TaskState.STOPPED, task.reason
    story.told("Stopped", "maintainer closed it")
    assert story.labels() == set()
    assert story.pulls() == []
    story.leaves_nothing()


def test_a_pr_that_is_closed_unmerged_counts_as_a_failure(tell: Tell) -> None:
    story = tell("rejected")
    story.begin("/route fix model=scripted-small")
    task = story.ends()
    assert task.state is TaskState.PUBLISHED, task.reason
    assert task.pr_number is not None
    [entry] = story.memory()
    assert entry.score > 0.5
    assert entry.final is False

    story.github.close(task.pr_number, repository=story.repository)
    story.installation.wait_for_state(TaskState.CLOSED, number=story.number)
    story.ends()
    assert [outcome.kind for outcome in story.installation.outcomes(story.number)] == [OutcomeKind.CLOSED]
    story.told("Pull request closed", "without a merge", "/route retry")
    assert story.labels() == {"acrouter:failed"}
    [entry] = story.memory()
    assert (entry.score, entry.final) == (0.0, True)
    story.leaves_nothing()


def _all_but(repository: Path, kept: str) -> list[str]:
    """Return every path at the head of a bare repository but one."""
    listed = subprocess.run(
        ["git", "-C", str(repository), "ls-tree", "-r", "-z", "--name-only", "HEAD"],
        check=True,
        capture_output=True,
        text=True,
    )
    return [path for path in listed.stdout.split("\0") if path and path != kept]

"""`acrouter up` alone: SQLite, no Redis, bubblewrap, everything in one process that can die at any moment."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from store.states import AttemptState, TaskState
from store.tables import Task
from tests.acceptance.conftest import CONFIG, installed, issue_of
from tests.support.bugs import SCRIPTED_KEY, MakeBug
from tests.support.github.server import GitHubServer
from tests.support.held_models import HeldModels
from tests.support.installation import Installation

pytestmark = [pytest.mark.node, pytest.mark.timeout(600)]

BUG = "xmltodict-none-attribute"


@pytest.fixture(scope="module")
def endpoint(make_bug: MakeBug) -> Iterator[HeldModels]:
    with HeldModels([make_bug(BUG)], api_key=SCRIPTED_KEY) as models:
        yield models


@pytest.fixture(scope="module")
def github(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitHubServer]:
    with GitHubServer(tmp_path_factory.mktemp("github")) as server:
        yield server


@pytest.fixture(scope="module")
def installation(
    tmp_path_factory: pytest.TempPathFactory, github: GitHubServer, endpoint: HeldModels
) -> Iterator[Installation]:
    """One for all stories: its sandbox's base is made once."""
    folder = tmp_path_factory.mktemp("embedded") / "acrouter"
    settings = {"ACROUTER_SANDBOX": "bubblewrap"}
    with installed(folder, github, endpoint, ("scripted-medium",), settings, forked=False) as made:
        assert made.database.is_sqlite
        made.start_web(timeout_s=240)  # the first start makes the sandbox's base
        yield made


@pytest.fixture
def story(
    request: pytest.FixtureRequest, installation: Installation, github: GitHubServer, make_bug: MakeBug
) -> "Story":
    """An issue about the bug, in a repository of its own."""
    repository = f"acme/{request.node.name.replace('_', '-')[:60]}"
    github.create_repository(repository, make_bug(BUG).git_dir)
    github.push("main", {".acrouter.yml": CONFIG}, message="Configure acrouter", repository=repository)
    issue = github.open_issue(*issue_of(BUG), repository=repository)
    number = len(installation.tasks()) + 1
    return Story(installation, github, repository, issue, number)


@dataclass(frozen=True)
class Story:
    installation: Installation
    github: GitHubServer
    repository: str
    issue: int
    number: int
    """The task's in the installation."""

    def begin(self) -> None:
        self.github.label(self.issue, "acrouter", repository=self.repository)

    def ends_well(self) -> Task:
        """One PR, one status comment, and a ledger that adds up."""
        task = self.installation.wait_until_told(self.number)
        assert task.state is TaskState.PUBLISHED, self.installation.history(self.number)
        [pull] = self.github.pull_requests(repository=self.repository)
        assert pull["number"] == task.pr_number
        assert task.pr_url in self.comment()
        assert self.labels() == {"acrouter", "acrouter:review"}
        self.installation.assert_the_ledger_adds_up()
        return task

    def comment(self) -> str:
        """The one comment on the issue."""
        [comment] = self.github.comments(self.issue, repository=self.repository)
        return str(comment["body"])

    def labels(self) -> set[str]:
        return self.github.labels(self.issue, repository=self.repository)

    def attempts(self) -> list[AttemptState]:
        return [attempt.state for attempt in self.installation.attempts(self.number)]


def test_one_process_leads_from_the_label_to_a_merged_pr(story: Story) -> None:
    story.begin()
    task = story.ends_well()
    assert "bubblewrap" in story.installation.logs(), "what the weaker sandbox gives up is said at the start"

    assert task.pr_number is not None
    story.github.merge(task.pr_number, repository=story.repository)
    story.installation.wait_for_state(TaskState.MERGED, number=story.number)
    story.installation.wait_until_told(story.number)
    assert story.labels() == {"acrouter:merged"}
    assert [(entry.score, entry.final) for entry in story.installation.memory()] == [(1.0, True)]


def test_a_second_process_on_the_same_port_says_so_and_starts_nothing(installation: Installation) -> None:
    first = {installation.processes["web"].pid}
    installation.wait_for(lambda: installation.workers() == first, "the first one's sign of life")
    second = subprocess.run(
        [sys.executable, "-m", "bot", "up", "--host", "127.0.0.1", "--port", str(installation.port)],
        cwd=installation.folder,
        env=installation.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (second.returncode, second.stdout) == (2, "")
    [line] = second.stderr.splitlines()
    assert line.startswith(f"acrouter: Port {installation.port} of 127.0.0.1 cannot be listened on: Address already")
    assert "give another --port" in line
    assert installation.workers() == first


def test_a_process_killed_in_mid_attempt_loses_nothing_but_the_attempt(story: Story, endpoint: HeldModels) -> None:
    with endpoint.held() as hold:
        story.begin()
        hold.wait_until_reached()
        story.installation.kill("web")
    story.installation.start_web()
    story.ends_well()
    assert story.attempts() == [AttemptState.LOST, AttemptState.VERIFIED]
    lost, _ = story.installation.attempts(story.number)
    assert lost.cost_usd > 0, "the call under way counts as paid for"


def test_a_terminated_process_hands_its_task_back_at_once(story: Story, endpoint: HeldModels) -> None:
    with endpoint.held() as hold:
        story.begin()
        hold.wait_until_reached()
        pid = story.installation.processes["web"].pid
        assert pid in story.installation.workers()
        # The model does not answer meanwhile: the task does not wait for it.
        assert story.installation.stop("web") == 0
        assert not hold.expired
    assert pid not in story.installation.workers(), "nobody takes it for a worker that is alive"
    task = story.installation.task(story.number)
    assert task.state is TaskState.QUEUED, story.installation.history(story.number)
    assert task.lease_owner == ""
    assert story.attempts() == [AttemptState.LOST]
    story.installation.assert_the_ledger_adds_up()
    assert "Waiting for a worker" in story.comment()

    story.installation.start_web()
    task = story.ends_well()
    assert story.attempts() == [AttemptState.LOST, AttemptState.VERIFIED]
    assert task.tries == 1, "a shutdown is not the task's fault"

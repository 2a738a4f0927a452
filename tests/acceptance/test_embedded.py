"""`acrouter up` alone: SQLite, no Redis, bubblewrap, everything in one process that can die at any moment."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from store.states import AttemptState, TaskState
from tests.acceptance.conftest import CONFIG, installed, issue_of
from tests.support.bugs import SCRIPTED_KEY, MakeBug
from tests.support.github.server import GitHubServer
from tests.support.held_models import HeldModels
from tests.support.installation import Installation

pytestmark = [pytest.mark.node, pytest.mark.timeout(300)]

REPOSITORY = "acme/tool"
BUG = "xmltodict-none-attribute"


@pytest.fixture
def endpoint(make_bug: MakeBug) -> Iterator[HeldModels]:
    with HeldModels([make_bug(BUG)], api_key=SCRIPTED_KEY) as models:
        yield models


@pytest.fixture
def installation(tmp_path: Path, github: GitHubServer, endpoint: HeldModels) -> Iterator[Installation]:
    settings = {"ACROUTER_SANDBOX": "bubblewrap"}
    with installed(tmp_path / "acrouter", github, endpoint, ("scripted-medium",), settings) as made:
        assert made.database.is_sqlite
        made.start_web()
        yield made


@pytest.fixture
def issue(installation: Installation, github: GitHubServer, make_bug: MakeBug) -> int:
    """A labelled issue about the bug."""
    github.create_repository(REPOSITORY, make_bug(BUG).git_dir)
    github.push("main", {".acrouter.yml": CONFIG}, message="Configure acrouter")
    number = github.open_issue(*issue_of(BUG))
    github.label(number, "acrouter")
    return number


def test_one_process_leads_from_the_label_to_a_merged_pr(
    installation: Installation, github: GitHubServer, issue: int
) -> None:
    task = installation.wait_until_told()
    _ends_well(installation, github, issue)
    assert "bubblewrap" in installation.logs(), "what the weaker sandbox gives up is said at the start"

    assert task.pr_number is not None
    github.merge(task.pr_number)
    installation.wait_for_state(TaskState.MERGED)
    installation.wait_until_told()
    assert github.labels(issue) == {"acrouter:merged"}
    [entry] = installation.memory()
    assert (entry.score, entry.final) == (1.0, True)


def test_a_process_killed_in_mid_attempt_loses_nothing_but_the_attempt(
    installation: Installation, github: GitHubServer, endpoint: HeldModels, issue: int
) -> None:
    with endpoint.held() as hold:
        hold.wait_until_reached()
        installation.kill("web")
    installation.start_web()
    installation.wait_until_told()
    _ends_well(installation, github, issue)
    lost, finished = installation.attempts()
    assert lost.state is AttemptState.LOST
    assert lost.cost_usd > 0, "the call under way counts as paid for"
    assert finished.state is AttemptState.VERIFIED


def test_a_terminated_process_hands_its_task_back(
    installation: Installation, github: GitHubServer, endpoint: HeldModels, issue: int
) -> None:
    with endpoint.held() as hold:
        hold.wait_until_reached()
        # The model does not answer meanwhile: the task does not wait for it.
        assert installation.stop("web") == 0
        assert not hold.expired
    task = installation.task()
    assert task.state is TaskState.QUEUED, installation.history()
    assert task.lease_owner == ""
    [attempt] = installation.attempts()
    assert attempt.state is AttemptState.LOST
    installation.assert_the_ledger_adds_up()
    [comment] = github.comments(issue)
    assert "Waiting for a worker" in comment["body"]

    installation.start_web()
    installation.wait_until_told()
    _ends_well(installation, github, issue)
    assert [attempt.state for attempt in installation.attempts()] == [AttemptState.LOST, AttemptState.VERIFIED]
    assert installation.task().tries == 1, "a shutdown is not the task's fault"


def _ends_well(installation: Installation, github: GitHubServer, issue: int) -> None:
    """One PR, one status comment, and a ledger that adds up."""
    task = installation.task()
    assert task.state is TaskState.PUBLISHED, installation.history()
    [pull] = github.pull_requests()
    assert pull["number"] == task.pr_number
    [comment] = github.comments(issue)
    assert task.pr_url in comment["body"]
    assert github.labels(issue) == {"acrouter", "acrouter:review"}
    installation.assert_the_ledger_adds_up()

"""A worker killed at any moment, and a broker that forgets everything: the work ends once, and the money adds up.

A story kills the worker that it finds, and leaves the one that took over to the next.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import redis

from store.states import AttemptState, TaskState
from tests.acceptance.conftest import Host, issue_of
from tests.support.github.faults import Hold
from tests.support.github.server import GitHubServer
from tests.support.held_models import HeldModels
from tests.support.installation import Installation

pytestmark = [pytest.mark.docker, pytest.mark.postgres, pytest.mark.redis, pytest.mark.node, pytest.mark.timeout(600)]

BUG = "xmltodict-none-attribute"
CONFIG = "exploration: off\nmodels: {allow: [scripted-small]}\n"


@dataclass(frozen=True)
class Story:
    """An issue that is about to be labelled, in a repository of its own."""

    installation: Installation
    github: GitHubServer
    repository: str
    issue: int

    def begin(self) -> None:
        self.github.label(self.issue, "acrouter")

    def wait_for_stage(self, stage: TaskState) -> None:
        self.installation.wait_for(self._in_stage(stage), f"the stage {stage}", every_s=0.02)  # some are short

    def replace_the_worker(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Kill it as a crash would, and start another."""
        self.installation.kill("worker")
        meanwhile()
        self.installation.start_worker()

    def ends_once(self) -> None:
        task = self.installation.wait_until_told()
        assert task.state is TaskState.PUBLISHED, self.installation.history()
        assert len(self.installation.tasks()) == 1
        [pull] = self.github.pull_requests()
        assert pull["number"] == task.pr_number
        [comment] = self.github.comments(self.issue)
        assert task.pr_url in comment["body"]
        assert [name for name in self.github.branches() if name.startswith("acrouter/")] == [task.branch]
        [check] = self.github.check_runs(task.head_sha)
        assert check["conclusion"] == "success"
        self.installation.assert_the_ledger_adds_up()
        self.installation.wait_for(lambda: not self.installation.containers(), "the end of every sandbox", 30)

    def _in_stage(self, stage: TaskState) -> Callable[[], bool]:
        return lambda: any(task.state is stage for task in self.installation.tasks())


@pytest.fixture(scope="module")
def bugs() -> tuple[str, ...]:
    return (BUG,)


@pytest.fixture
def story(installation: Installation, github: GitHubServer, host: Host) -> Story:
    repository = host(BUG, CONFIG)
    installation.ensure_worker()
    return Story(installation, github, repository, github.open_issue(*issue_of(BUG)))


@pytest.mark.parametrize("stage", [TaskState.PREPARING, TaskState.ROUTING, TaskState.VERIFYING])
def test_a_worker_killed_in_a_stage_is_replaced(stage: TaskState, story: Story) -> None:
    story.begin()
    story.wait_for_stage(stage)
    story.replace_the_worker()
    story.ends_once()


def test_a_worker_killed_while_the_model_works_loses_no_money_from_sight(story: Story, endpoint: HeldModels) -> None:
    with endpoint.held(after=2) as hold:
        story.begin()
        hold.wait_until_reached()
        story.installation.wait_for(
            lambda: any(attempt.steps >= 2 for attempt in story.installation.attempts()), "the model's second step"
        )
        newest = story.github.push("main", {"NEWS.md": "Nothing yet.\n"})
        story.replace_the_worker(meanwhile=hold.release)
    story.ends_once()
    [pull] = story.github.pull_requests()
    assert f"The branch stands on {newest[:7]}, 1 commit later" in pull["body"]
    lost, finished = story.installation.attempts()
    assert lost.state is AttemptState.LOST
    assert lost.cost_usd > 0
    assert lost.trajectory["messages"], "what was paid for is kept"
    assert finished.state is AttemptState.VERIFIED


@pytest.mark.parametrize(
    ("call", "path"),
    [
        ("POST", r"/issues/\d+/comments$"),
        ("POST", r"/git-receive-pack$"),
        ("POST", r"/pulls$"),
        ("POST", r"/check-runs$"),
    ],
    ids=["first comment", "push", "pull request", "check run"],
)
def test_a_worker_killed_while_github_does_what_it_asked_for_does_it_once(call: str, path: str, story: Story) -> None:
    hold = Hold()
    story.github.on(call, re.escape(story.repository) + r"(\.git)?" + path, hold)
    story.begin()
    story.installation.wait_for(hold.reached.is_set, f"{call} {path}")
    # GitHub carries it out although nobody waits for the answer any more.
    story.replace_the_worker(meanwhile=hold.gate.set)
    story.ends_once()


def test_a_broker_that_forgets_everything_loses_no_work(story: Story, redis_url: str, endpoint: HeldModels) -> None:
    broker = redis.Redis.from_url(redis_url)
    story.installation.without_worker()
    story.begin()
    story.github.settle()
    broker.flushall()  # before any worker saw the delivery
    with endpoint.held() as hold:
        story.installation.start_worker()
        hold.wait_until_reached()
        story.wait_for_stage(TaskState.ATTEMPTING)
        broker.flushall()
    story.ends_once()


def test_two_workers_share_the_work_and_do_it_once(story: Story) -> None:
    story.installation.start_worker("another")
    story.begin()
    story.github.comment(story.issue, "/route fix", by="maintainer")
    task = story.installation.wait_until_told()
    [status] = [comment for comment in story.github.comments(story.issue) if "acrouter:task=" in comment["body"]]
    assert len(story.github.pull_requests()) == 1
    assert len(story.installation.tasks()) == 1
    assert task.pr_url in status["body"]
    story.installation.assert_the_ledger_adds_up()

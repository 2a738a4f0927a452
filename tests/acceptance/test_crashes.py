"""A worker killed at any moment, and a broker that forgets everything: the work ends once, and the money adds up."""

from collections.abc import Callable

import docker
import pytest
import redis

from bot.assembly import instance_name
from bot.demo.scripted import ScriptedEndpoint
from sandbox.docker_backend import INSTANCE_LABEL
from store.settings import Settings
from store.states import AttemptState, TaskState
from tests.acceptance.conftest import Host, issue_of
from tests.support.github.faults import Hold
from tests.support.github.server import GitHubServer
from tests.support.installation import Installation

pytestmark = [pytest.mark.docker, pytest.mark.postgres, pytest.mark.redis, pytest.mark.node, pytest.mark.timeout(600)]

BUG = "xmltodict-none-attribute"
CONFIG = "exploration: off\nmodels: {allow: [scripted-small]}\n"


@pytest.fixture
def issue(installation: Installation, github: GitHubServer, host: Host) -> int:
    """An issue that is about to be labelled."""
    host(BUG, CONFIG)
    return github.open_issue(*issue_of(BUG))


def assert_done_once(installation: Installation, github: GitHubServer, number: int) -> None:
    task = installation.wait_until_told()
    assert task.state is TaskState.PUBLISHED, installation.history()
    assert len(installation.tasks()) == 1
    [pull] = github.pull_requests()
    assert pull["number"] == task.pr_number
    [comment] = github.comments(number)
    assert task.pr_url in comment["body"]
    assert [name for name in github.branches() if name.startswith("acrouter/")] == [task.branch]
    [check] = github.check_runs(task.head_sha)
    assert check["conclusion"] == "success"
    installation.assert_the_ledger_adds_up()
    installation.wait_for(lambda: not sandboxes(installation), "the end of every sandbox", 30)


def sandboxes(installation: Installation) -> list[str]:
    """The containers of this installation, running or not."""
    settings = Settings(
        _env_file=None, database_url=installation.environment["DATABASE_URL"], data_dir=installation.folder / "data"
    )
    label = f"{INSTANCE_LABEL}={instance_name(settings)}"
    client = docker.from_env()
    try:
        return [str(found["Id"]) for found in client.api.containers(all=True, filters={"label": label})]
    finally:
        client.close()


def in_state(installation: Installation, *states: TaskState) -> Callable[[], bool]:
    return lambda: any(task.state in states for task in installation.tasks())


@pytest.mark.parametrize("stage", [TaskState.PREPARING, TaskState.ROUTING, TaskState.VERIFYING])
def test_a_worker_killed_in_a_stage_is_replaced(
    stage: TaskState, installation: Installation, github: GitHubServer, issue: int
) -> None:
    installation.start_worker("first")
    github.label(issue, "acrouter")
    installation.wait_for(in_state(installation, stage), f"the stage {stage}")
    installation.kill("first")
    installation.start_worker("second")
    assert_done_once(installation, github, issue)


def test_a_worker_killed_while_the_model_works_loses_no_money_from_sight(
    installation: Installation, github: GitHubServer, issue: int, scripted_endpoint: ScriptedEndpoint
) -> None:
    scripted_endpoint.latency_s = 1.0
    installation.start_worker("first")
    github.label(issue, "acrouter")
    installation.wait_for(
        lambda: any(attempt.steps >= 2 for task in installation.tasks() for attempt in installation.attempts()),
        "the model's second step",
    )
    installation.kill("first")
    scripted_endpoint.latency_s = 0.0
    installation.start_worker("second")
    assert_done_once(installation, github, issue)
    lost, finished = installation.attempts()
    assert lost.state is AttemptState.LOST
    assert lost.cost_usd > 0
    assert lost.trajectory["messages"], "what was paid for is kept"
    assert finished.state is AttemptState.VERIFIED


@pytest.mark.parametrize(
    ("call", "path"),
    [
        ("POST", r"/repos/acme/tool/issues/\d+/comments$"),
        ("POST", r"/git-receive-pack$"),
        ("POST", r"/repos/acme/tool/pulls$"),
        ("POST", r"/repos/acme/tool/check-runs$"),
    ],
    ids=["first comment", "push", "pull request", "check run"],
)
def test_a_worker_killed_while_github_does_what_it_asked_for_does_it_once(
    call: str, path: str, installation: Installation, github: GitHubServer, issue: int
) -> None:
    hold = Hold()
    github.on(call, path, hold)
    installation.start_worker("first")
    github.label(issue, "acrouter")
    installation.wait_for(hold.reached.is_set, f"{call} {path}")
    installation.kill("first")
    hold.gate.set()  # GitHub carries it out although nobody waits for the answer any more
    installation.start_worker("second")
    assert_done_once(installation, github, issue)


def test_a_broker_that_forgets_everything_loses_no_work(
    installation: Installation, github: GitHubServer, issue: int, redis_url: str, scripted_endpoint: ScriptedEndpoint
) -> None:
    broker = redis.Redis.from_url(redis_url)
    github.label(issue, "acrouter")
    github.settle()
    broker.flushall()  # before any worker saw the delivery
    scripted_endpoint.latency_s = 0.3
    installation.start_worker()
    installation.wait_for(in_state(installation, TaskState.ATTEMPTING), "the attempt")
    broker.flushall()
    assert_done_once(installation, github, issue)


def test_two_workers_share_the_work_and_do_it_once(
    installation: Installation, github: GitHubServer, issue: int
) -> None:
    installation.start_worker("one")
    installation.start_worker("two")
    github.label(issue, "acrouter")
    github.comment(issue, "/route fix", by="maintainer")
    installation.wait_until_told()
    [status] = [comment for comment in github.comments(issue) if "acrouter:task=" in comment["body"]]
    assert len(github.pull_requests()) == 1
    assert len(installation.tasks()) == 1
    assert installation.task().pr_url in status["body"]
    installation.assert_the_ledger_adds_up()

"""No secret leaves its place: canaries are planted, and looked for wherever a text can end up."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from store.states import TaskState
from tests.acceptance.conftest import CONFIG, installed, issue_of, served_by
from tests.support import canaries
from tests.support.bugs import SCRIPTED_KEY, MakeBug
from tests.support.github.server import GitHubServer
from tests.support.held_models import HeldModels
from tests.support.installation import Installation

pytestmark = [pytest.mark.docker, pytest.mark.postgres, pytest.mark.redis, pytest.mark.node, pytest.mark.timeout(300)]

REPOSITORY = "acme/tool"
BUG = "xmltodict-none-attribute"
OPERATORS = "a-canary-in-the-workers-environment"
ISSUES = "ghp_" + "CanaryInTheIssue" + "0123456789abcdefghij"
FILES = "ghp_" + "CanaryInAFile000" + "0123456789abcdefghij"


@pytest.fixture
def endpoint(make_bug: MakeBug) -> Iterator[HeldModels]:
    with HeldModels([make_bug(BUG)], api_key=SCRIPTED_KEY) as models:
        yield models


@pytest.fixture
def installation(
    tmp_path: Path, postgres_base: str, redis_url: str, github: GitHubServer, endpoint: HeldModels
) -> Iterator[Installation]:
    settings = served_by(postgres_base, redis_url) | {
        "OPERATORS_SECRET": OPERATORS,
        "ACROUTER_LOG_LEVEL": "debug",  # the more is logged, the more can leak
    }
    with installed(tmp_path / "acrouter", github, endpoint, ("scripted-medium",), settings) as made:
        made.start_web()
        made.start_beat()
        yield made


def test_no_secret_is_found_anywhere_after_a_whole_task(
    installation: Installation, github: GitHubServer, endpoint: HeldModels, make_bug: MakeBug, redis_url: str
) -> None:
    github.create_repository(REPOSITORY, make_bug(BUG).git_dir)
    source = github.bare().file("main", "xmltodict.py")
    assert source is not None
    # The scripted model prints the beginning of this file, so the token comes into its conversation.
    changed = source.decode().replace("\n", f"\n# token: {FILES}\n", 1)
    github.push("main", {".acrouter.yml": CONFIG, "xmltodict.py": changed}, message="Configure acrouter")
    title, text = issue_of(BUG)
    number = github.open_issue(title, f"{text}\nI use the token {ISSUES} for this.\n")

    with canaries.command_lines() as lines, endpoint.held(after=2) as hold:
        installation.start_worker()
        github.label(number, "acrouter")
        hold.wait_until_reached()
        planted = _planted(github)
        containers = installation.containers()
        assert containers, "the agent's, and those that wait for the tests"
        for container in containers:
            leaks = canaries.inside_container(container, [s for n, s in planted.items() if n != "token in a file"])
            assert leaks == []
            assert canaries.inside_container(container, ["PATH="]), "what is there is found"
        broker = redis.Redis.from_url(redis_url)
        queued = b"\n".join(key + (broker.dump(key) or b"") for key in broker.scan_iter())
        assert canaries.found(planted, queued) == set()
        hold.release()
        task = installation.wait_until_told()
    assert task.state is TaskState.PUBLISHED, installation.history()
    assert task.pr_number is not None
    github.comment(number, "/route explain", by="maintainer")
    installation.wait_for(lambda: len(github.comments(number)) == 2, "the explanation")
    github.merge(task.pr_number)
    installation.wait_for_state(TaskState.MERGED)
    installation.wait_until_told()

    planted = _planted(github)
    assert len(planted) > 6, "tokens were handed out"
    assert any(b"git\0" in line for line in lines), "what runs is seen"
    for line in lines:
        assert canaries.found(planted, line) == set(), line
    assert canaries.found(planted, installation.logs()) == set()
    # What GitHub sent is kept as it came; it holds nobody's secret but the issue's author's.
    for column, value in canaries.database_rows(installation.database, without=[("delivery", "payload")]):
        assert canaries.found(planted, value) == set(), f"{column}: {value}"
    own = {name: secret for name, secret in planted.items() if name != "token in the issue"}
    kept = list(canaries.database_rows(installation.database))
    for column, value in kept:
        assert canaries.found(own, value) == set(), column
    assert {column for column, value in kept if canaries.found(planted, value)} == {"delivery.payload"}, "it is read"
    _said_nothing(github, planted, number, task.pr_number, task.head_sha)
    not_in_files = {name: secret for name, secret in planted.items() if name != "token in a file"}
    assert canaries.found(not_in_files, canaries.git_objects(github.bare().path)) == set()
    files = list(canaries.files(installation.folder / "data"))
    assert any(name.startswith("mirrors/") for name, _ in files), "what the workers keep is seen"
    for name, content in files:
        assert canaries.found(not_in_files, content) == set(), name


def _planted(github: GitHubServer) -> dict[str, str]:
    """Return every secret by a name for it."""
    key_lines = [line for line in github.private_key_pem.splitlines() if len(line) > 40 and "-----" not in line]
    return {
        "webhook secret": github.webhook_secret,
        "model key": SCRIPTED_KEY,
        "worker's environment": OPERATORS,
        "token in the issue": ISSUES,
        "token in a file": FILES,
        "App's key": key_lines[0],
        "App's key, later": key_lines[-2],
        **{f"installation token {index}": token for index, token in enumerate(github.tokens)},
    }


def _said_nothing(github: GitHubServer, planted: dict[str, str], number: int, pr_number: int, head_sha: str) -> None:
    """What acrouter wrote at GitHub, in the end and at any time before."""
    [pull] = [pull for pull in github.pull_requests() if pull["number"] == pr_number]
    shown = [
        *(comment["body"] for comment in github.comments(number) if comment["user"]["login"] != "maintainer"),
        pull["title"],
        pull["body"],
        json.dumps(github.check_runs(head_sha)),
        github.bare().commit(head_sha).message,
        *(json.dumps(request.body, default=repr) for request in github.requests),
    ]
    assert len(shown) > 10
    for words in shown:
        assert canaries.found(planted, words) == set(), words

"""The main job: a label, a status comment, a PR, a merge, and another choice the next time."""

import pytest

from store.states import OutcomeKind, TaskState
from tests.acceptance.conftest import Host, issue_of
from tests.support.github.server import GitHubServer
from tests.support.held_models import HeldModels
from tests.support.installation import Installation

pytestmark = [pytest.mark.docker, pytest.mark.postgres, pytest.mark.redis, pytest.mark.node, pytest.mark.timeout(600)]

FIRST, SECOND = "boltons-atomicsaver-pathlib", "boltons-find-files-pathlib"
CONFIG = "exploration: off\ntest: python -m pytest -q tests/test_fileutils.py\n"
"""The module's own tests: those of the whole project would tell the same and take a minute."""
QUICK = "xmltodict-none-attribute"


@pytest.fixture(scope="module")
def bugs() -> tuple[str, ...]:
    return (FIRST, SECOND, QUICK)


@pytest.fixture(scope="module")
def forked() -> bool:
    """The main job is done by the programs as they are."""
    return False


def test_a_label_leads_to_a_pr_and_its_merge_changes_the_next_choice(
    installation: Installation, github: GitHubServer, host: Host
) -> None:
    host(FIRST, CONFIG)
    installation.ensure_worker()
    assert installation.memory() == [], "it is the installation's first story"

    number = github.open_issue(*issue_of(FIRST))
    github.label(number, "acrouter")
    task = installation.wait_until_told()

    assert task.state is TaskState.PUBLISHED, installation.history()
    attempts = installation.attempts()
    assert attempts[0].model == "scripted-medium", "nothing is known yet: price alone speaks for the middle one"
    assert attempts[-1].model == "scripted-large", installation.history()
    told = attempts[-1].trajectory["messages"][1]["content"]
    assert "Attempt 1" in told, "the second model knows what the first one tried"
    assert attempts[0].patch.splitlines()[0] in told
    verdicts = [installation.verification(attempt).verdict for attempt in attempts]
    assert verdicts[0] == "breaking"
    assert verdicts[-1] == "verified"

    [comment] = github.comments(number)
    assert "scripted-large" in comment["body"]
    assert "(scripted)" in comment["body"]
    assert task.pr_url in comment["body"]
    assert github.labels(number) == {"acrouter", "acrouter:review"}

    [pull] = github.pull_requests()
    assert pull["number"] == task.pr_number
    assert pull["draft"] is False
    assert f"Fixes #{number}" in pull["body"]
    assert "scripted-large" in pull["body"]
    [check] = github.check_runs(task.head_sha)
    assert check["conclusion"] == "success"

    github.merge(pull["number"])
    installation.wait_for_state(TaskState.MERGED)
    installation.wait_until_told()
    assert [outcome.kind for outcome in installation.outcomes()] == [OutcomeKind.MERGED]
    assert github.labels(number) == {"acrouter:merged"}
    remembered = {entry.model: (entry.score, entry.final) for entry in installation.memory()}
    assert remembered["scripted-large"] == (1.0, True)
    assert remembered["scripted-medium"][1] is False

    second = github.open_issue(*issue_of(SECOND))
    github.label(second, "acrouter")
    task = installation.wait_until_told(2)
    assert task.state is TaskState.PUBLISHED, installation.history(2)
    first_choice, *_ = installation.decisions(1)
    second_choice, *_ = installation.decisions(2)
    assert first_choice.chosen == "scripted-medium"
    assert second_choice.chosen == "scripted-large"
    assert second_choice.neighbours
    assert any("scripted-large" in reason for reason in second_choice.reasons)
    assert len(installation.attempts(2)) == 1

    installation.assert_the_ledger_adds_up()
    assert len(github.comments(number)) == 1
    assert len(github.comments(second)) == 1


def test_a_stranger_starts_nothing_and_an_edited_comment_neither(
    installation: Installation, github: GitHubServer, host: Host
) -> None:
    host(QUICK)
    installation.ensure_worker()
    number = github.open_issue(*issue_of(QUICK), by="stranger")
    comment = github.comment(number, "Nice project", by="maintainer")
    github.comment(number, "/route fix", by="stranger")
    github.edit_comment(comment, "/route fix", by="maintainer")
    github.comment(number, "/route help", by="maintainer")
    installation.wait_for(lambda: len(github.comments(number)) == 4, "the answer to /route help")
    assert installation.tasks() == []
    assert "/route fix" in github.comments(number)[-1]["body"]


def test_a_redelivered_webhook_is_handled_once(
    installation: Installation, github: GitHubServer, host: Host, endpoint: HeldModels
) -> None:
    repository = host(QUICK)
    installation.ensure_worker()
    worker = installation.processes["worker"].pid
    installation.wait_for(lambda: worker in installation.workers(), "the worker's sign of life")
    installation.without_worker()
    assert worker not in installation.workers(), "one that ended is not taken for one that is alive"
    number = github.open_issue(*issue_of(QUICK))
    github.label(number, "acrouter")
    github.settle()
    [labelled] = [
        delivery
        for delivery in github.deliveries
        if delivery.payload.get("action") == "labeled" and delivery.payload["repository"]["full_name"] == repository
    ]
    for _ in range(3):
        github.redeliver(labelled)
    installation.start_worker()
    with endpoint.held():
        installation.wait_for_state(TaskState.ATTEMPTING)
        for _ in range(3):
            github.redeliver(labelled)
        github.comment(number, "/route status", by="maintainer")
        installation.wait_for(lambda: len(github.comments(number)) >= 3, "the status comment and the answer")
    assert len(installation.tasks()) == 1

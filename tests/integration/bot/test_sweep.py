"""What GitHub could not tell is found: webhooks that did not arrive, PRs whose end nobody told."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import cast

import pytest
from sqlmodel import select

from bot.github import GitHubForge
from bot.github.hook_deliveries import Missed
from bot.sweep import sweep_deliveries
from store.database import Database
from store.states import OutcomeKind, TaskState
from store.tables import Delivery, Outcome, Repository, Sweep, Task
from store.types import utc_now
from tests.support.forge import pull_request
from tests.support.rows import add_repository, add_task
from tests.support.story import Story
from tests.support.whole_run import WholeRun
from workers import sweeps
from workers.errors import ForgeTemporary


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WholeRun]:
    made = WholeRun(tmp_path_factory.mktemp("sweep"))
    with made.connected():
        yield made
    made.close()


def due(database: Database) -> None:
    with database.session() as session:
        for row in session.exec(select(Sweep)).all():
            session.add(row.sqlmodel_update({"due_at": utc_now() - timedelta(seconds=1)}))


def guids(database: Database) -> set[str]:
    with database.session() as session:
        return set(session.exec(select(Delivery.guid)).all())


def test_a_webhook_that_did_not_arrive_is_fetched_once_and_handled_as_if_it_had(runs: WholeRun) -> None:
    issue = runs.hub.open_issue("Bug")
    runs.hub.label(issue, "acrouter")
    runs.hub.settle()
    runs._heard = len(runs.hub.deliveries)  # none of it reached us
    missed = {delivery.guid for delivery in runs.hub.deliveries}
    assert not missed & guids(runs.database)
    assert sweep_deliveries(runs.runtime) == len(missed)
    assert missed <= guids(runs.database)
    runs.settle()
    with runs.database.session() as session:
        tasks = session.exec(select(Task).where(Task.target_number == issue)).all()
    assert [task.state for task in tasks] == [TaskState.PUBLISHED]
    assert sweep_deliveries(runs.runtime) == 0, "it is not due yet"
    due(runs.database)
    runs.hub.settle()
    runs._heard = len(runs.hub.deliveries)
    later = len(guids(runs.database))
    sweep_deliveries(runs.runtime)
    due(runs.database)
    assert sweep_deliveries(runs.runtime) == 0
    assert len(guids(runs.database)) >= later


def test_a_sweep_that_github_breaks_off_begins_again_where_it_was(
    runs: WholeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    due(runs.database)
    with runs.database.session() as session:
        before = session.get_one(Sweep, "deliveries").done_until
    later = utc_now() + timedelta(minutes=20)

    def limited(*_: object) -> Iterator[Missed]:
        yield Missed("one", "ping", json.dumps({"zen": "x"}).encode())
        raise ForgeTemporary("a rate limit", later)

    monkeypatch.setattr(GitHubForge, "missed_deliveries", limited)
    assert sweep_deliveries(runs.runtime) == 1
    with runs.database.session() as session:
        row = session.get_one(Sweep, "deliveries")
    assert (row.done_until, row.due_at) == (before, later)


def test_one_process_at_a_time_has_the_turn(database: Database) -> None:
    assert sweeps.take_turn(database, "pulls", 60) is not None
    assert sweeps.take_turn(database, "pulls", 60) is None
    due(database)
    assert sweeps.take_turn(database, "pulls", 60) is not None


def test_a_pr_whose_merge_nobody_told_is_found_merged(sqlite_database: Database) -> None:
    story = Story(sqlite_database)
    old = utc_now() - timedelta(hours=1)
    task_id = add_task(
        sqlite_database, state=TaskState.PUBLISHED, pr_number=9, updated_at=old, report_due=False, head_sha="d" * 40
    )
    quiet = add_task(
        sqlite_database,
        state=TaskState.PUBLISHED,
        pr_number=10,
        updated_at=old,
        report_due=False,
        target="42/issues/2",
        target_number=2,
    )
    story.forge.issues[9] = replace(pull_request(9, "fix", "d" * 40), state="closed", merged=True, merge_sha="e" * 40)
    story.forge.issues[10] = pull_request(10, "fix-2", "d" * 40)
    sweeps.sweep(story.runtime)
    with sqlite_database.session() as session:
        assert session.get_one(Task, task_id).state is TaskState.MERGED
        assert session.get_one(Task, quiet).state is TaskState.PUBLISHED
        assert [row.kind for row in session.exec(select(Outcome)).all()] == [OutcomeKind.MERGED]
    asked = story.forge.calls.count("pull_request")
    due(sqlite_database)
    sweeps.sweep(story.runtime)
    assert story.forge.calls.count("pull_request") == asked, "what was looked at a moment ago waits its turn"


def test_each_repository_is_offered_a_configuration_once_and_a_few_at_a_time(sqlite_database: Database) -> None:
    story = Story(sqlite_database, onboarding="required")
    for number in range(43, 51):
        add_repository(sqlite_database, number, f"octo/tools-{number}")
    add_repository(sqlite_database, 60, "octo/.github")
    story.configure("test: pytest\n", "octo/tools-43")
    sweeps.sweep(story.runtime)
    assert len(story.forge.proposals) == 4, "a batch of five, one of which has a file"
    for _ in range(3):
        due(sqlite_database)
        sweeps.sweep(story.runtime)
    names = [cast("str", proposal["repository"]) for proposal in story.forge.proposals]
    assert sorted(names) == sorted(["octo/tools", *(f"octo/tools-{number}" for number in range(44, 51))])
    with sqlite_database.session() as session:
        assert session.get_one(Repository, 43).onboarding_at is not None

"""What people see on a target follows the task's state, however many processes write and whatever GitHub says."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from store.database import Database
from store.states import TaskKind, TaskState
from store.tables import Task
from store.types import utc_now
from tests.support.forge import MemoryForge, make_runtime
from tests.support.rows import add_task, settings
from workers.errors import ForgeError, ForgeTemporary, TargetGone
from workers.history import record
from workers.reports import report, try_report
from workers.runtime import Runtime


@pytest.fixture
def forge() -> MemoryForge:
    return MemoryForge()


@pytest.fixture
def runtime(database: Database, forge: MemoryForge) -> Runtime:
    return make_runtime(database, settings(), forge)


def move(database: Database, task_id: int, state: TaskState, words: str) -> None:
    with database.session() as session:
        record(session, session.get_one(Task, task_id), state, words)


def row(database: Database, task_id: int) -> Task:
    with database.session() as session:
        return session.get_one(Task, task_id)


def test_a_report_writes_the_comment_the_check_and_the_label_and_is_not_due_again(
    runtime: Runtime, forge: MemoryForge
) -> None:
    task_id = add_task(runtime.database, head_sha="a" * 40)
    move(runtime.database, task_id, TaskState.PUBLISHED, "PR 2 is open.")
    report(runtime, task_id)
    assert "PR 2 is open." in forge.comments[1][0]
    assert forge.checks[1][0] == "a" * 40
    assert forge.labels == {1: "review"}
    task = row(runtime.database, task_id)
    assert (task.report_due, task.report_not_before) == (False, None)
    report(runtime, task_id)
    assert len(forge.comments[1]) == 1


def test_two_reporters_at_once_make_one_comment(runtime: Runtime, forge: MemoryForge) -> None:
    task_id = add_task(runtime.database)
    other = make_runtime(runtime.database, settings(), forge, name="another")
    inside: list[str] = []

    def meanwhile(method: str) -> None:
        if method == "between looking and writing" and not inside:
            inside.append(method)
            with ThreadPoolExecutor(1) as pool:
                pool.submit(report, other, task_id).result(30)

    forge.before = meanwhile
    report(runtime, task_id)
    assert inside
    assert len(forge.comments[1]) == 1


def test_a_state_that_changes_while_it_is_written_is_written_again(runtime: Runtime, forge: MemoryForge) -> None:
    task_id = add_task(runtime.database)
    move(runtime.database, task_id, TaskState.PUBLISHED, "PR 2 is open.")
    other = make_runtime(runtime.database, settings(), forge, name="another")
    moved: list[str] = []

    def merged_meanwhile(method: str) -> None:
        if method == "set_state_label" and not moved:
            moved.append(method)
            move(runtime.database, task_id, TaskState.MERGED, "PR 2 was merged.")
            report(other, task_id)  # it leaves the writing to the one who is at it

    forge.before = merged_meanwhile
    report(runtime, task_id)
    assert "PR 2 was merged." in forge.comments[1][0]
    assert forge.labels == {1: "merged"}
    assert not row(runtime.database, task_id).report_due


def test_what_github_refuses_costs_that_part_alone(runtime: Runtime, forge: MemoryForge) -> None:
    task_id = add_task(runtime.database, head_sha="a" * 40)
    forge.refusals = {"upsert_status_comment": [ForgeError("locked")], "upsert_check_run": [TargetGone("no commit")]}
    report(runtime, task_id)
    assert forge.labels == {1: "working"}
    assert not forge.comments.get(1)
    assert row(runtime.database, task_id).report_due, "it may have been a moment's trouble"
    wait_no_longer(runtime.database, task_id)
    report(runtime, task_id)
    assert len(forge.comments[1]) == 1
    assert not row(runtime.database, task_id).report_due


def test_words_that_github_refuses_again_and_again_are_given_up(runtime: Runtime, forge: MemoryForge) -> None:
    task_id = add_task(runtime.database)
    forge.refusals = {"upsert_status_comment": [ForgeError("locked") for _ in range(9)]}
    for tries in range(1, 4):
        assert row(runtime.database, task_id).report_due
        wait_no_longer(runtime.database, task_id)
        report(runtime, task_id)
        assert forge.calls.count("upsert_status_comment") == tries
    assert not row(runtime.database, task_id).report_due


def wait_no_longer(database: Database, task_id: int) -> None:
    with database.session() as session:
        session.add(session.get_one(Task, task_id).sqlmodel_update({"report_not_before": None}))


def test_a_report_that_github_cannot_take_waits_as_long_as_github_asks(runtime: Runtime, forge: MemoryForge) -> None:
    task_id = add_task(runtime.database)
    later = utc_now() + timedelta(hours=1)
    forge.refusals = {"set_state_label": [ForgeTemporary("a rate limit", later)]}
    with pytest.raises(ForgeTemporary):
        report(runtime, task_id)
    task = row(runtime.database, task_id)
    assert (task.report_due, task.report_not_before) == (True, later)
    calls = len(forge.calls)
    try_report(runtime, task_id)
    assert len(forge.calls) == calls
    with runtime.database.session() as session:
        session.add(session.get_one(Task, task_id).sqlmodel_update({"report_not_before": utc_now()}))
    report(runtime, task_id)
    assert forge.labels == {1: "working"}
    assert len(forge.comments[1]) == 1


def test_an_error_of_our_own_ends_no_work_and_is_tried_again_later(runtime: Runtime, forge: MemoryForge) -> None:
    task_id = add_task(runtime.database)

    def crash(method: str) -> None:
        raise KeyError(method)

    forge.before = crash
    try_report(runtime, task_id)
    task = row(runtime.database, task_id)
    assert task.report_due
    assert task.report_not_before is not None
    assert task.report_not_before > utc_now()


def test_a_reporter_that_died_is_followed_by_the_next_when_its_time_is_over(
    runtime: Runtime, forge: MemoryForge
) -> None:
    task_id = add_task(runtime.database, report_not_before=utc_now() + timedelta(seconds=30))
    report(runtime, task_id)
    assert not forge.comments
    with runtime.database.session() as session:
        session.add(session.get_one(Task, task_id).sqlmodel_update({"report_not_before": utc_now()}))
    report(runtime, task_id)
    assert len(forge.comments[1]) == 1


def test_a_failed_ci_run_without_a_pull_request_is_told_on_its_commit(runtime: Runtime, forge: MemoryForge) -> None:
    task_id = add_task(runtime.database, kind=TaskKind.CI_FAILURE, target_number=None, base_sha="b" * 40)
    move(runtime.database, task_id, TaskState.NO_FIX, "Nothing was found.")
    report(runtime, task_id)
    [(sha, face)] = forge.checks.values()
    assert sha == "b" * 40
    assert face.conclusion == "neutral"
    assert not forge.comments
    assert not forge.labels


def test_a_local_task_has_nobody_to_tell(database: Database) -> None:
    task_id = add_task(database, kind=TaskKind.LOCAL, repository_id=None, target_number=None)
    report(make_runtime(database, settings()), task_id)
    assert not row(database, task_id).report_due

"""What becomes of a PR is kept once and counts, in whatever order it is told, even before the PR's number is known."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest
from sqlmodel import select

from routing import Evidence
from routing.evidence import EvidenceBook
from routing.evidence_store import EvidenceFeed, new_revision
from store.database import Database
from store.states import AttemptState, OutcomeKind, TaskState
from store.tables import Attempt, History, MemoryEntry, Outcome, Task
from store.types import utc_now
from tests.support.forge import MemoryForge, make_runtime, pull_request
from tests.support.rows import add_attempt, add_task, settings
from workers import leases
from workers.forge_target import ForgeTarget
from workers.outcomes import merge_ref, record_outcome, tasks_of_pull_request
from workers.ports import BranchHead
from workers.reports import repository_ref
from workers.run import Run
from workers.runtime import Runtime

AT = datetime(2026, 3, 1, tzinfo=UTC)
HEAD = "a" * 40


@pytest.fixture
def forge() -> MemoryForge:
    return MemoryForge()


@pytest.fixture
def runtime(database: Database, forge: MemoryForge) -> Runtime:
    return make_runtime(database, settings(), forge)


def published(runtime: Runtime, **values: object) -> int:
    """A task whose verified attempt is remembered with the verifier's score, and whose PR 5 is open."""
    shown = {"state": TaskState.PUBLISHED, "pr_number": 5, "branch": "acrouter/x", "head_sha": HEAD}
    task_id = add_task(runtime.database, **(shown | values))
    attempt_id = add_attempt(runtime.database, task_id, state=AttemptState.VERIFIED, score=0.8)
    with runtime.database.session() as session:
        session.get_one(Task, task_id).published_attempt_id = attempt_id
        session.add(
            MemoryEntry(
                key=f"attempt:{attempt_id}",
                task_key=f"task:{task_id}",
                model="small",
                score=0.8,
                cost_usd=0.1,
                revision=new_revision(),
                created_at=AT,
                updated_at=AT,
            )
        )
    return task_id


def tell(runtime: Runtime, task_id: int, kind: OutcomeKind, ref: str = "pr:5", *, hours: int = 0) -> bool:
    at = AT + timedelta(hours=hours)
    return record_outcome(runtime.database, task_id, kind, ref=ref, at=at, data={"pr": 5})


def row(runtime: Runtime, task_id: int) -> Task:
    with runtime.database.session() as session:
        return session.get_one(Task, task_id)


def known(runtime: Runtime, task_id: int) -> tuple[float, bool]:
    with runtime.database.session() as session:
        entry = session.exec(select(MemoryEntry).where(MemoryEntry.task_key == f"task:{task_id}")).one()
        return entry.score, entry.final


class Learner:
    """What a process's voters take for true of each attempt."""

    def __init__(self, database: Database) -> None:
        self._feed = EvidenceFeed(database)
        self._book = EvidenceBook()
        self._keys: set[str] = set()

    def observe(self, evidence: Evidence) -> Evidence:
        self._book.put(evidence)
        self._keys.add(evidence.key)
        return evidence

    def known(self, task_id: int) -> tuple[float, bool]:
        self._feed.catch_up(self)
        [evidence] = [one for one in map(self._book.get, self._keys) if one.task_key == f"task:{task_id}"]
        return evidence.score, evidence.final


def words(runtime: Runtime, task_id: int) -> Sequence[str]:
    with runtime.database.session() as session:
        return session.exec(select(History.message).where(History.task_id == task_id)).all()


def test_a_merge_replaces_the_verifiers_score_once(runtime: Runtime) -> None:
    task_id = published(runtime)
    assert tell(runtime, task_id, OutcomeKind.MERGED)
    assert not tell(runtime, task_id, OutcomeKind.MERGED)
    assert row(runtime, task_id).state is TaskState.MERGED
    assert known(runtime, task_id) == (1.0, True)
    assert words(runtime, task_id) == ["PR 5 was merged."]


def test_what_ci_says_is_not_final_and_a_merge_is(runtime: Runtime) -> None:
    task_id = published(runtime)
    tell(runtime, task_id, OutcomeKind.CI_PASSED)
    assert known(runtime, task_id)[1] is False
    tell(runtime, task_id, OutcomeKind.MERGED)
    assert known(runtime, task_id) == (1.0, True)


def test_no_order_of_outcomes_changes_what_is_learnt_or_the_state(runtime: Runtime) -> None:
    story = (OutcomeKind.CHANGES_REQUESTED, OutcomeKind.CI_FAILED, OutcomeKind.MERGED, OutcomeKind.REVERTED)
    seen = set()
    for number, order in enumerate(permutations(story)):
        task_id = published(runtime, target=f"42/issues/{number}", target_number=number)
        for kind in order:
            tell(runtime, task_id, kind)
        seen.add((row(runtime, task_id).state, *known(runtime, task_id)))
    assert len(seen) == 1


@pytest.mark.parametrize(
    "story",
    [
        (OutcomeKind.CI_PASSED, OutcomeKind.CHANGES_REQUESTED),
        (OutcomeKind.CI_FAILED, OutcomeKind.CI_PASSED, OutcomeKind.FOREIGN_COMMITS),
        (OutcomeKind.MERGED, OutcomeKind.CLOSED),
        (OutcomeKind.CHANGES_REQUESTED, OutcomeKind.MERGED, OutcomeKind.REVERTED),
    ],
)
def test_an_outcome_that_is_told_late_counts_as_any_other(runtime: Runtime, story: tuple[OutcomeKind, ...]) -> None:
    """The rows, a process that heard of each outcome at once, and one that hears of them at the end all agree."""
    seen, at_once = set(), Learner(runtime.database)
    for number, order in enumerate(permutations(enumerate(story, start=1))):
        task_id = published(runtime, target=f"42/issues/{number}", target_number=number)
        at_once.known(task_id)
        for hours, kind in order:
            tell(runtime, task_id, kind, hours=hours)
            at_once.known(task_id)
        assert known(runtime, task_id) == at_once.known(task_id) == Learner(runtime.database).known(task_id), order
        seen.add(known(runtime, task_id))
    assert len(seen) == 1


def test_a_close_that_is_told_after_the_merge_changes_no_state(runtime: Runtime) -> None:
    task_id = published(runtime)
    tell(runtime, task_id, OutcomeKind.MERGED)
    tell(runtime, task_id, OutcomeKind.CLOSED)
    assert row(runtime, task_id).state is TaskState.MERGED


def test_an_outcome_of_a_pr_without_a_number_yet_finds_its_task_by_branch_and_commit(runtime: Runtime) -> None:
    task_id = published(runtime, state=TaskState.PUBLISHING, pr_number=None)
    assert tasks_of_pull_request(runtime.database, 42, 5) == []
    head = BranchHead("acrouter/x", HEAD)
    [task] = tasks_of_pull_request(runtime.database, 42, 5, head=head)
    assert task.id == task_id
    other = published(runtime, target="42/issues/2", pr_number=6)
    assert [task.id for task in tasks_of_pull_request(runtime.database, 42, 5, head=head)] == [task_id]
    later = BranchHead("acrouter/x", "b" * 40)
    assert [task.id for task in tasks_of_pull_request(runtime.database, 42, 6, head=later)] == [other]
    elsewhere = BranchHead("feature", HEAD)
    assert tasks_of_pull_request(runtime.database, 42, 7, head=elsewhere) == []


def take_up(runtime: Runtime, forge: MemoryForge, task_id: int) -> bool:
    """A second worker takes the task and looks for what the first one has handed in."""
    with runtime.database.session() as session:
        session.get_one(Task, task_id).state = TaskState.QUEUED
    lease = leases.take(runtime.database, task_id, "second", 60)
    assert lease is not None
    assert runtime.forge is not None
    with lease:
        return ForgeTarget(runtime.forge, repository_ref(runtime, 42)).adopt(Run(runtime, lease))


def test_a_pr_that_a_lost_worker_opened_is_adopted(runtime: Runtime, forge: MemoryForge) -> None:
    task_id = published(runtime, pr_number=None)
    forge.pulls["acrouter/x"] = pull_request(5, "acrouter/x", HEAD)
    assert take_up(runtime, forge, task_id)
    task = row(runtime, task_id)
    assert (task.state, task.pr_number) == (TaskState.PUBLISHED, 5)


def test_a_pr_that_was_merged_while_nobody_worked_counts_as_merged_once(runtime: Runtime, forge: MemoryForge) -> None:
    task_id = published(runtime, pr_number=None)
    forge.pulls["acrouter/x"] = pull_request(5, "acrouter/x", HEAD)
    forge.merge("acrouter/x")
    assert take_up(runtime, forge, task_id)
    assert row(runtime, task_id).state is TaskState.MERGED
    assert known(runtime, task_id) == (1.0, True)
    assert not tell(runtime, task_id, OutcomeKind.MERGED, merge_ref(5))
    assert words(runtime, task_id) == ["PR 5 was merged."]


def test_a_pr_that_was_closed_while_nobody_worked_counts_as_closed(runtime: Runtime, forge: MemoryForge) -> None:
    task_id = published(runtime, pr_number=None)
    tell(runtime, task_id, OutcomeKind.CLOSED)  # the webhook came while the task had no number yet
    forge.pulls["acrouter/x"] = pull_request(5, "acrouter/x", HEAD)
    assert take_up(runtime, forge, task_id)
    assert row(runtime, task_id).state is TaskState.CLOSED


def test_a_task_that_pushed_nothing_has_no_pr_to_adopt(runtime: Runtime, forge: MemoryForge) -> None:
    task_id = published(runtime, pr_number=None, head_sha="", branch="")
    assert not take_up(runtime, forge, task_id)
    assert forge.calls == []


def test_an_outcome_without_an_attempt_is_kept_and_teaches_nothing(runtime: Runtime) -> None:
    task_id = add_task(runtime.database, state=TaskState.PUBLISHED, pr_number=5, updated_at=utc_now())
    assert tell(runtime, task_id, OutcomeKind.MERGED)
    with runtime.database.session() as session:
        assert session.exec(select(Outcome.kind)).all() == [OutcomeKind.MERGED]
        assert session.exec(select(Attempt.id)).all() == []

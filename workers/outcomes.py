"""What became of a task's PR. Each outcome counts once, in whatever order and however late it comes."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlmodel import Session, select

from routing import Dimension, Evidence
from routing.contexts import traits
from routing.evidence_store import save, save_score
from routing.outcome_score import final_score, provisional_score
from store.database import Database
from store.states import OutcomeKind, TaskState
from store.tables import Attempt, Outcome, Repository, Task, Verification
from store.types import utc_now
from workers.brain import evidence_key
from workers.history import note, record
from workers.ports import BranchHead, PullRequestInfo

_AFTER_PUBLISHING = (TaskState.PUBLISHED, TaskState.MERGED, TaskState.CLOSED)


def tasks_of_pull_request(
    database: Database, repository_id: int, pr_number: int, *, head: BranchHead | None = None
) -> Sequence[Task]:
    """Return the tasks whose answer is this PR (one, unless somebody reused the branch).

    `head`, a branch of the repository itself, finds a PR that was opened a moment ago, whose number its worker has not
    written down yet. The commit alone does not: anybody can open a PR of it from a fork.
    """
    theirs = select(Task).where(Task.repository_id == repository_id)
    with database.reading() as session:
        # One after the other, each by its index: SQLite would go through all tasks of the repository for both at once.
        found = list(session.exec(theirs.where(Task.pr_number == pr_number)).all())
        if head is not None:
            of_branch = session.exec(theirs.where(Task.branch == head.name, Task.head_sha == head.sha)).all()
            found += [task for task in of_branch if task.pr_number is None]
    return sorted(found, key=lambda task: task.id or 0)


def kinds(session: Session, task_id: int) -> frozenset[OutcomeKind]:
    """Return the kinds of the outcomes that are known of a task."""
    found = session.exec(select(Outcome.kind).where(Outcome.task_id == task_id)).all()
    return frozenset(OutcomeKind(kind) for kind in found)


def merge_ref(pr_number: int) -> str:
    """Return the `ref` of a merge: a PR is merged once, whoever tells of it."""
    return f"pr:{pr_number}"


def record_end(database: Database, task_id: int, pull: PullRequestInfo) -> bool:
    """Keep what became of a PR that was found merged or closed. The webhook that tells the same adds nothing."""
    data = {"pr": pull.number, "merge_sha": pull.merge_sha, "head_sha": pull.head_sha}
    kind, ref = (
        (OutcomeKind.MERGED, merge_ref(pull.number)) if pull.merged else (OutcomeKind.CLOSED, f"pr:{pull.number}@found")
    )
    if record_outcome(database, task_id, kind, ref=ref, at=utc_now(), data=data):
        return True
    with database.session() as session:
        task = session.exec(select(Task).where(Task.id == task_id).with_for_update(key_share=True)).one()
        if task.state is TaskState.PUBLISHED:  # it was found so before, and was opened again in between
            _tell(session, task, kind, data)
    return False


def record_reopened(database: Database, task_id: int) -> bool:
    """Have a task whose PR was closed and is open again wait for its end once more; return whether it did not.

    That it was closed stays known, and what was learnt of it until the PR is merged.
    """
    with database.session() as session:
        task = session.exec(select(Task).where(Task.id == task_id).with_for_update(key_share=True)).one()
        if task.state is not TaskState.CLOSED:
            return False
        record(session, task, TaskState.PUBLISHED, f"PR {task.pr_number} was opened again.")
    return True


def record_outcome(
    database: Database, task_id: int, kind: OutcomeKind, *, ref: str, at: datetime, data: dict[str, Any]
) -> bool:
    """Keep an outcome and let it replace the verifier's score of the published attempt.

    `ref` tells two outcomes of one kind apart (a commit, a review's id). Returns False where this one was known.
    """
    with database.session() as session:
        task = session.exec(select(Task).where(Task.id == task_id).with_for_update(key_share=True)).one()
        known = session.exec(
            select(Outcome.id).where(Outcome.task_id == task_id, Outcome.kind == kind, Outcome.ref == ref)
        ).first()
        if known is not None:
            return False
        session.add(Outcome(task_id=task_id, kind=kind, ref=ref, at=at, data=data))
        session.flush()
        _tell(session, task, kind, data)
        # An outcome that leaves the state as it is belongs into the status comment's history all the same.
        task.report_due, task.updated_at = True, utc_now()
        session.add(task)
        _learn(session, task)
    return True


def _tell(session: Session, task: Task, kind: OutcomeKind, data: dict[str, Any]) -> None:
    number = task.pr_number or data.get("pr")
    match kind:
        case OutcomeKind.MERGED | OutcomeKind.CLOSED if task.state == kind.value:
            pass  # it was found so, and that was told
        case OutcomeKind.MERGED if task.state in _AFTER_PUBLISHING:
            record(session, task, TaskState.MERGED, f"PR {number} was merged.", **data)
        case OutcomeKind.CLOSED if task.state is TaskState.PUBLISHED:
            record(session, task, TaskState.CLOSED, f"PR {number} was closed without a merge.", **data)
        case OutcomeKind.REVERTED:
            note(session, task, f"PR {number} was reverted.", **data)
        case OutcomeKind.CI_PASSED:
            note(session, task, f"CI passed on PR {number}.", **data)
        case OutcomeKind.CI_FAILED:
            note(session, task, f"CI failed on PR {number}.", **data)
        case OutcomeKind.CHANGES_REQUESTED:
            note(session, task, f"A review of PR {number} asked for changes.", **data)
        case OutcomeKind.FOREIGN_COMMITS:
            note(session, task, f"Somebody else's commits were added to PR {number}.", **data)
        case _:
            note(session, task, f"PR {number}: {kind}.", **data)


def _learn(session: Session, task: Task) -> None:
    """The score is a function of the set of outcomes, so neither their order nor a repetition can matter.

    The task's row is locked: nobody knows of more outcomes and writes first.
    """
    attempt = session.get(Attempt, task.published_attempt_id) if task.published_attempt_id is not None else None
    if attempt is None or attempt.score is None:
        return
    rows = session.exec(select(Outcome).where(Outcome.task_id == task.id)).all()
    told = {row.kind for row in rows}
    score, at, key = final_score(told), max(row.at for row in rows), evidence_key(attempt)
    if score is None:
        save_score(session, key, score=provisional_score(attempt.score, told), final=False, at=at)
    elif not save_score(session, key, score=score, final=True, at=at) and not _was_measured(session, attempt):
        save(session, _first_evidence(session, task, attempt, score, at), None)


def _was_measured(session: Session, attempt: Attempt) -> bool:
    tests = session.exec(select(Verification.tests).where(Verification.attempt_id == attempt.id)).first()
    return tests is None or bool(tests.get("measured", True))


def _first_evidence(session: Session, task: Task, attempt: Attempt, score: float, at: datetime) -> Evidence:
    """Return what is learnt of an attempt that nothing was known of before its outcome."""
    repository = session.get(Repository, task.repository_id) if task.repository_id is not None else None
    name = repository.full_name if repository is not None else ""
    text = f"{task.title}\n\n{task.text}"
    return Evidence(
        key=evidence_key(attempt),
        task_key=f"task:{task.id}",
        dimension=Dimension(task.dimension or Dimension.AGENTIC_PROGRAMMING),
        model=attempt.model,
        score=score,
        cost_usd=attempt.cost_usd,
        final=True,
        at=at,
        attempted_at=attempt.finished_at,
        text=text,
        traits=traits(text),
        repository=name,
        language=task.language,
        title=task.title,
        link=f"{name}#{task.target_number}" if name and task.target_number is not None else "",
    )

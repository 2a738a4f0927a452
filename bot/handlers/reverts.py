"""Recognises that merged work was taken back: git's and GitHub's own words for it."""

import re
from dataclasses import dataclass
from datetime import datetime

from bot.handlers.context import Context
from bot.handlers.tasks import tasks_merged_as, tasks_of_commit
from store.states import OutcomeKind
from store.tables import Task
from workers.outcomes import tasks_of_pull_request

# What `git revert` writes, and what GitHub writes into the PR that its Revert button opens.
_COMMIT = re.compile(r"This reverts commit ([0-9a-f]{7,40})\b")
_PULL = re.compile(r"^\s*Reverts (?:([\w.\-]+/[\w.\-]+))?#(\d{1,18})\b", re.MULTILINE)


@dataclass(frozen=True)
class Reverts:
    commits: frozenset[str] = frozenset()
    pulls: frozenset[int] = frozenset()


def reverts_in(text: str, full_name: str) -> Reverts:
    """Return the commits and the PRs of repository `full_name` that a message says it reverts."""
    return Reverts(
        commits=frozenset(_COMMIT.findall(text)),
        pulls=frozenset(
            int(number)
            for repository, number in _PULL.findall(text)
            if not repository or repository.lower() == full_name.lower()
        ),
    )


def reverted(context: Context, reverts: Reverts, at: datetime, by_sha: str) -> bool:
    """Record the reverts of tasks' work; return whether there were any. One revert counts once, however it is told."""
    found = False
    for number in sorted(reverts.pulls):
        for task in tasks_of_pull_request(context.database, context.repository.id, number):
            found = True
            _record(context, task, number, at, by_sha)
    for sha in sorted(reverts.commits):
        for task in tasks_of_commit(context, sha) or tasks_merged_as(context, sha):
            found = True
            _record(context, task, task.pr_number, at, by_sha)
    return found


def _record(context: Context, task: Task, pr_number: int | None, at: datetime, by_sha: str) -> None:
    data = {"pr": pr_number, "by_sha": by_sha}
    context.record_outcome(task, OutcomeKind.REVERTED, ref=f"pr:{pr_number}", at=at, data=data)

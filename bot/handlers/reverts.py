"""Recognises that merged work was taken back: git's and GitHub's own words for it, by who may push, and the change.

Words alone count for nothing: anybody can write them into a PR that a maintainer merges for something else.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.handlers.context import Context
from bot.handlers.taking_back import takes_back
from bot.handlers.tasks import tasks_merged_as, tasks_of_commit
from bot.prose import prose_lines
from store.states import OutcomeKind
from store.tables import Task
from workers.errors import TargetGone
from workers.outcomes import tasks_of_pull_request
from workers.ports import FileChange

# What `git revert` writes, and what GitHub writes into the PR that its Revert button opens.
_COMMIT = re.compile(r"This reverts commit ([0-9a-f]{7,40})\b")
_PULL = re.compile(r"\s*Reverts (?:([\w.\-]+/[\w.\-]+))?#(\d{1,18})\b")
_MOST_READ = 5_000
"""Characters of a message: what says so stands at its beginning, and Markdown takes its time."""
_MOST_NAMED = 5
"""Commits, and PRs, that one message can be believed to revert."""


@dataclass(frozen=True)
class Reverts:
    commits: frozenset[str] = frozenset()
    pulls: frozenset[int] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.commits or self.pulls)


def reverts_in(text: str, full_name: str) -> Reverts:
    """Return the commits and the PRs of repository `full_name` that a message says, in its prose, it reverts."""
    text = text[:_MOST_READ]
    if not may_revert(text):
        return Reverts()
    lines = prose_lines(text)
    commits = [sha for line in lines for sha in _COMMIT.findall(line)]
    named = [found for line in lines if (found := _PULL.match(line))]
    pulls = [int(found[2]) for found in named if (found[1] or full_name).lower() == full_name.lower()]
    return Reverts(
        frozenset(list(dict.fromkeys(commits))[:_MOST_NAMED]), frozenset(list(dict.fromkeys(pulls))[:_MOST_NAMED])
    )


def may_revert(text: str) -> bool:
    """Whether a message is worth reading as Markdown: a push can bring thousands."""
    return "everts " in text[:_MOST_READ]


def reverted(
    context: Context, reverts: Reverts, changes: Callable[[], Sequence[FileChange]], at: datetime, by_sha: str
) -> bool:
    """Record the reverts of tasks' work; return whether there were any. One revert counts once, however it is told.

    `changes` reads what the reverting commit or PR does; it is asked for only where a task's work is named.
    """
    named = {
        task.id: task
        for tasks in (
            *(tasks_of_pull_request(context.database, context.repository.id, one) for one in sorted(reverts.pulls)),
            *(tasks_of_commit(context, sha) or tasks_merged_as(context, sha) for sha in sorted(reverts.commits)),
        )
        for task in tasks
    }
    if not named:
        return False
    later = changes()
    found = [task for task in named.values() if takes_back(_work(context, task), later)]
    for task in found:
        _record(context, task, task.pr_number, at, by_sha)
    return bool(found)


def _work(context: Context, task: Task) -> Sequence[FileChange]:
    """What a task changed: acrouter pushes one commit."""
    try:
        return context.forge.commit_changes(context.repository, task.head_sha) if task.head_sha else ()
    except TargetGone:
        return ()


def _record(context: Context, task: Task, pr_number: int | None, at: datetime, by_sha: str) -> None:
    data = {"pr": pr_number, "by_sha": by_sha}
    context.record_outcome(task, OutcomeKind.REVERTED, ref=f"pr:{pr_number}", at=at, data=data)

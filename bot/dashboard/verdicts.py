"""What counts as a success, for tasks and for attempts: the one place that says it."""

import numpy as np

from bot.dashboard.facts import ATTEMPT_STATES, TASK_STATES, Bools, Facts, TaskFacts, once
from store.states import AttemptState, TaskState

_CODES = {state: code for code, state in enumerate(TASK_STATES)}
_MERGED = _CODES[TaskState.MERGED]
_PUBLISHED = _CODES[TaskState.PUBLISHED]
_FAILED, _OPEN, _WITH_PR = (
    np.array([state in among for state in TASK_STATES])
    for among in (
        {TaskState.CLOSED, TaskState.NO_FIX, TaskState.FAILED},
        {state for state in TaskState if state.is_open},
        {TaskState.PUBLISHED, TaskState.MERGED, TaskState.CLOSED},
    )
)
"""Whether a state is one of them, by its code."""
_JUDGED = ATTEMPT_STATES.index(AttemptState.VERIFIED)
_UNUSABLE = ATTEMPT_STATES.index(AttemptState.FAILED)


def merged(tasks: TaskFacts) -> Bools:
    """The PR was merged and stayed."""
    found: Bools = (tasks.state == _MERGED) & ~tasks.reverted
    return found


def lost(facts: Facts) -> Bools:
    """No patch could be published, acrouter failed, or its PR was closed or reverted."""
    tasks = facts.tasks
    found: Bools = (_FAILED[tasks.state] & ~unanswered(facts)) | (tasks.reverted & _WITH_PR[tasks.state])
    return found


def unanswered(facts: Facts) -> Bools:
    """The task failed and no model had a chance in any of its attempts: an outage says nothing of tasks or models."""
    failed: Bools = facts.tasks.state == _CODES[TaskState.FAILED]
    if not failed.any():
        return failed
    of_failed = failed[facts.task_rows]
    rows, unusable = facts.task_rows[of_failed], facts.attempts.state[of_failed] == _UNUSABLE
    made = np.bincount(rows, minlength=len(failed))
    found: Bools = failed & (made > 0) & (made == np.bincount(rows[unusable], minlength=len(failed)))
    return found


def decided(facts: Facts) -> Bools:
    """Merged or lost. Tasks at work, PRs that wait, and what a person, a rule or an outage stopped are not decided."""
    return merged(facts.tasks) | lost(facts)


def waiting(tasks: TaskFacts) -> Bools:
    """The PR is open."""
    found: Bools = (tasks.state == _PUBLISHED) & ~tasks.reverted
    return found


def at_work(tasks: TaskFacts) -> Bools:
    found: Bools = _OPEN[tasks.state]
    return found


def with_pull_request(tasks: TaskFacts) -> Bools:
    found: Bools = _WITH_PR[tasks.state]
    return found


@once
def unusable_attempts(facts: Facts) -> Bools:
    """The model's endpoint or the sandbox could not be used: it says nothing about the answers."""
    found: Bools = facts.attempts.state == _UNUSABLE
    return found


@once
def won_attempts(facts: Facts) -> Bools:
    """The attempt's patch was merged and stayed."""
    rows = facts.task_rows
    found: Bools = (facts.tasks.published[rows] == facts.attempts.id) & merged(facts.tasks)[rows]
    return found


@once
def waiting_attempts(facts: Facts) -> Bools:
    """The attempt's patch is in a PR that is open."""
    rows = facts.task_rows
    found: Bools = (facts.tasks.published[rows] == facts.attempts.id) & waiting(facts.tasks)[rows]
    return found


@once
def lost_attempts(facts: Facts) -> Bools:
    """The attempt was judged, its task is over, and its patch was not merged or did not stay."""
    over = ~at_work(facts.tasks)[facts.task_rows]
    judged = facts.attempts.state == _JUDGED
    found: Bools = judged & over & ~won_attempts(facts) & ~waiting_attempts(facts)
    return found

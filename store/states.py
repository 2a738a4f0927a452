"""The closed sets of words that the tables hold."""

from enum import StrEnum


class DeliveryState(StrEnum):
    RECEIVED = "received"
    """Stored and acknowledged, not handled yet."""
    HANDLED = "handled"
    IGNORED = "ignored"
    FAILED = "failed"


class TaskState(StrEnum):
    QUEUED = "queued"
    PREPARING = "preparing"
    ROUTING = "routing"
    ATTEMPTING = "attempting"
    VERIFYING = "verifying"
    PUBLISHING = "publishing"
    PUBLISHED = "published"
    """The PR is open."""
    MERGED = "merged"
    CLOSED = "closed"
    """The PR was closed without a merge."""
    NO_FIX = "no_fix"
    """Every attempt was made and none may be published."""
    FAILED = "failed"
    """acrouter could not do its work; the reason says why."""
    STOPPED = "stopped"
    """A person stopped it."""
    REFUSED = "refused"
    """A budget or a rule forbade the work."""

    @property
    def is_running(self) -> bool:
        """A worker holds the task, or should."""
        return self in _RUNNING

    @property
    def is_open(self) -> bool:
        """There is work left for acrouter before the task's ending."""
        return self is TaskState.QUEUED or self.is_running


_RUNNING = frozenset(
    {TaskState.PREPARING, TaskState.ROUTING, TaskState.ATTEMPTING, TaskState.VERIFYING, TaskState.PUBLISHING}
)


class TaskKind(StrEnum):
    ISSUE = "issue"
    PULL_REQUEST = "pull_request"
    CI_FAILURE = "ci_failure"
    LOCAL = "local"
    """`acrouter solve`: a local repository and a text file."""


class Trigger(StrEnum):
    LABEL = "label"
    COMMAND = "command"
    CI = "ci"
    COMMAND_LINE = "command_line"


class AttemptState(StrEnum):
    RUNNING = "running"
    FINISHED = "finished"
    """The agent ended; a patch may or may not be there."""
    VERIFIED = "verified"
    LOST = "lost"
    """The worker died with it, or it was stopped: it says nothing about the model."""
    FAILED = "failed"
    """The model or the sandbox could not be used."""


class OutcomeKind(StrEnum):
    MERGED = "merged"
    CLOSED = "closed"
    REVERTED = "reverted"
    CI_PASSED = "ci_passed"
    CI_FAILED = "ci_failed"
    CHANGES_REQUESTED = "changes_requested"
    FOREIGN_COMMITS = "foreign_commits"


class LedgerKind(StrEnum):
    RESERVED = "reserved"
    SETTLED = "settled"
    """Ends a reservation with what the call really cost."""
    ASSUMED = "assumed"
    """Ends a reservation whose worker died: the whole amount counts as spent."""

"""The workers' branch of the error tree."""

from datetime import datetime

from store.errors import AcrouterError


class PipelineError(AcrouterError):
    """Base of what can go wrong while a task is worked on; the message is for the people on its target."""


class LeaseLost(PipelineError):  # noqa: N818
    """Another worker took the task over."""


class ForgeError(PipelineError):
    """GitHub refused or failed; the message says what was asked and what it answered."""


class ForgeTemporary(ForgeError):  # noqa: N818
    """GitHub cannot answer now: a rate limit, a 5xx, no connection. The task waits in the queue until `retry_at`."""

    def __init__(self, message: str, retry_at: datetime | None = None) -> None:
        super().__init__(message)
        self.retry_at = retry_at


class TargetGone(ForgeError):  # noqa: N818
    """The issue, PR, branch or repository is not there any more, or the App may not see it."""


class NoEndpointAnswers(PipelineError):  # noqa: N818
    """The endpoints of all models that may be used fail. The task waits in the queue until `retry_at`."""

    def __init__(self, message: str, retry_at: datetime) -> None:
        super().__init__(message)
        self.retry_at = retry_at


class BudgetError(PipelineError):
    """A cap cannot be what somebody asked for."""

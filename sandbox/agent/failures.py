"""What a failed call means: was it billed, is it worth another try, is the model unusable."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import sandbox.agent.quiet  # noqa: F401  # isort: skip  (before LiteLLM itself)
import httpx
import litellm

REFUSED_BUSY = frozenset({503, 529})
"""Refused before any work was done. Other 5xx and lost connections may have been billed."""
# Of this request's words or shape: the endpoint may be well for every other.
_REFUSED_REQUEST = frozenset({400, 413, 422})
# Some providers say so of the account or of the model, which no other request will help.
_OF_THE_ACCOUNT = re.compile(
    r"credit|billing|quota|balance|api[ _-]?key|(?:valid|unknown|unsupported) model|model id", re.I
)
_SAID_FIRST = 300
"""Characters of a provider's words: further on it may repeat what it was sent."""


@dataclass(frozen=True)
class CallFailure:
    """How one call of a model failed."""

    billed: bool
    """False only where it certainly was not: no connection was made, or the provider refused the request."""
    retry: bool
    too_long: bool
    """The messages do not fit the model's context."""
    reason: str
    about_request: bool = False
    """The provider refused what it was sent; whether it would take something else, nobody knows."""


def understand(error: Exception) -> CallFailure:
    """Classify an exception of `litellm.completion`.

    LiteLLM gives its own errors a made-up status where there was none, so the chain of causes is asked first.
    """
    said = str(getattr(error, "message", None) or error)
    of_the_account = _OF_THE_ACCOUNT.search(f"{type(error).__name__}: {said}"[:_SAID_FIRST]) is not None
    reason = _told_once(type(error).__name__, said)
    causes = list(_chain(error))
    if isinstance(error, litellm.exceptions.ContextWindowExceededError):
        return CallFailure(billed=False, retry=False, too_long=True, reason=reason)
    if any(isinstance(cause, httpx.ConnectError | httpx.ConnectTimeout) for cause in causes):
        return CallFailure(billed=False, retry=True, too_long=False, reason=f"no connection: {reason}")
    status = _http_status(causes)
    if status is not None:
        return CallFailure(
            billed=status >= 500 and status not in REFUSED_BUSY,
            retry=status == 429 or status >= 500,
            too_long=False,
            reason=f"HTTP {status}: {reason}",
            about_request=status in _REFUSED_REQUEST and not of_the_account,
        )
    if isinstance(error, litellm.exceptions.Timeout) or any(isinstance(c, httpx.TimeoutException) for c in causes):
        # Sent and unanswered: it is paid for, and asking again would pay twice.
        return CallFailure(billed=True, retry=False, too_long=False, reason=f"no answer in time: {reason}")
    if isinstance(error, litellm.exceptions.AuthenticationError | litellm.exceptions.BadRequestError):
        about_request = isinstance(error, litellm.exceptions.BadRequestError) and not of_the_account
        return CallFailure(billed=False, retry=False, too_long=False, reason=reason, about_request=about_request)
    return CallFailure(billed=True, retry=isinstance(error, litellm.exceptions.APIError), too_long=False, reason=reason)


def _told_once(name: str, said: str) -> str:
    """LiteLLM writes an error's name before its words, up to three times."""
    return f"{name}: {re.sub(rf'^(?:(?:litellm[.])?{re.escape(name)}:[ ]*)+', '', said)}"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(12):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def _http_status(causes: list[BaseException]) -> int | None:
    for cause in causes:
        if isinstance(cause, httpx.HTTPStatusError):
            return cause.response.status_code
    return None

"""Turns what PyGithub, requests and httpx raise into the workers' three kinds of error."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import httpx
import requests
from github import GithubException

from bot.errors import CredentialsRefused
from store.scrub import scrub
from store.types import utc_now
from workers.errors import ForgeError, ForgeTemporary, TargetGone

_LONGEST_WAIT = timedelta(hours=1)
"""GitHub's limits renew within the hour; a later time is a clock gone wrong."""


@contextmanager
def translated(action: str) -> Iterator[None]:
    """Raise ForgeTemporary, TargetGone or ForgeError in place of a library's errors. `action` says what was tried."""
    try:
        yield
    except GithubException as error:
        headers = {name.lower(): str(value) for name, value in (error.headers or {}).items()}
        raise classify(action, error.status or 0, headers, _message(error)) from None
    except (requests.RequestException, httpx.HTTPError) as error:
        raise ForgeTemporary(f"GitHub could not be reached to {action}: {type(error).__name__}.") from None


def classify(action: str, status: int, headers: Mapping[str, str], message: str) -> ForgeError:
    """Return the error that an answer of GitHub means. Header names are in lower case."""
    words = scrub(f"GitHub could not {action}: {message} (HTTP {status}).")
    if is_rate_limit(status, headers, message):
        return ForgeTemporary(words, retry_at(headers))
    if status >= 500 or status in (0, 408):
        return ForgeTemporary(words, retry_at(headers) if "retry-after" in headers else None)
    if status == 401:
        return CredentialsRefused(words)
    if status in (404, 410, 451):
        return TargetGone(words)
    return ForgeError(words)


def is_rate_limit(status: int, headers: Mapping[str, str], message: str) -> bool:
    """Whether an answer is GitHub's primary or secondary rate limit.

    https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
    """
    if status == 429:
        return True
    return status == 403 and (
        "retry-after" in headers or headers.get("x-ratelimit-remaining") == "0" or "rate limit" in message.lower()
    )


def retry_at(headers: Mapping[str, str]) -> datetime:
    """Return when GitHub may be asked again: its own word, or a minute from now, as its documentation says."""
    now = utc_now()
    moment = _after(headers.get("retry-after", ""), now) or _reset(headers) or now + timedelta(minutes=1)
    return min(max(moment, now), now + _LONGEST_WAIT)


def _after(value: str, now: datetime) -> datetime | None:
    if value.isdecimal():
        return now + timedelta(seconds=min(int(value), 1_000_000))
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _reset(headers: Mapping[str, str]) -> datetime | None:
    value = headers.get("x-ratelimit-reset", "")
    if headers.get("x-ratelimit-remaining") != "0" or not value.isdecimal():
        return None
    try:
        return datetime.fromtimestamp(int(value), UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _message(error: GithubException) -> str:
    """GitHub's sentence with the details of a 422, cut: an answer can be a whole page."""
    data = error.data if isinstance(error.data, dict) else {}
    message = str(data.get("message") or error.message or "no explanation")
    details = [
        str(item.get("message") or f"{item.get('field', '')} {item.get('code', '')}".strip())
        if isinstance(item, dict)
        else str(item)
        for item in data.get("errors") or []
    ]
    return "; ".join([message, *details])[:500]

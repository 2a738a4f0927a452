"""What GitHub's refusals mean to the queue."""

from datetime import UTC, datetime, timedelta

import pytest

from bot.errors import CredentialsRefused
from bot.github.failures import classify, retry_at
from store.types import utc_now
from workers.errors import ForgeError, ForgeTemporary, TargetGone


@pytest.mark.parametrize(
    ("status", "headers", "message", "kind"),
    [
        (500, {}, "", ForgeTemporary),
        (502, {}, "", ForgeTemporary),
        (429, {}, "", ForgeTemporary),
        (403, {"retry-after": "5"}, "wait", ForgeTemporary),
        (403, {"x-ratelimit-remaining": "0"}, "API rate limit exceeded", ForgeTemporary),
        (403, {}, "You have exceeded a secondary rate limit.", ForgeTemporary),
        (403, {"x-ratelimit-remaining": "4999"}, "Resource not accessible by integration", ForgeError),
        (401, {}, "Bad credentials", CredentialsRefused),
        (404, {}, "Not Found", TargetGone),
        (410, {}, "This issue was deleted", TargetGone),
        (409, {}, "Conflict", ForgeError),
        (422, {}, "Validation Failed", ForgeError),
    ],
)
def test_an_answer_is_one_of_three_kinds(
    status: int, headers: dict[str, str], message: str, kind: type[ForgeError]
) -> None:
    error = classify("open a PR", status, headers, message)
    assert type(error) is kind
    assert "open a PR" in str(error)


def test_a_message_carries_no_token() -> None:
    token = "ghs_" + "x" * 36
    assert token not in str(classify("push", 403, {}, f"bad {token}"))


def test_the_queue_waits_as_long_as_github_says() -> None:
    now = utc_now()
    reset = str(int((now + timedelta(minutes=20)).timestamp()))
    assert abs(retry_at({"retry-after": "90"}) - now - timedelta(seconds=90)) < timedelta(seconds=5)
    limited = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": reset}
    assert abs(retry_at(limited) - now - timedelta(minutes=20)) < timedelta(seconds=5)
    assert abs(retry_at({}) - now - timedelta(minutes=1)) < timedelta(seconds=5)


@pytest.mark.parametrize("value", ["99999999999999999999", "Wed, 21 Oct 2099 07:28:00 GMT", "soon", "-1"])
def test_a_mad_time_is_bounded(value: str) -> None:
    moment = retry_at({"retry-after": value})
    assert datetime.now(UTC) - timedelta(seconds=5) <= moment <= datetime.now(UTC) + timedelta(hours=1)

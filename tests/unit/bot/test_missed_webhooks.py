"""Webhooks that did not arrive: GitHub's list of them is followed as far as it pays."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from bot.github import hook_deliveries
from bot.github.client import Clients
from bot.github.hook_deliveries import missed

SINCE = datetime(2026, 12, 1, tzinfo=UTC)


class EndlessList:
    """A GitHub that always has one more page of a busy App's deliveries."""

    asked = 0

    def page_as_app(self, path: str, action: str) -> tuple[Mapping[str, str], list[dict[str, Any]]]:
        self.asked += 1
        item = {"id": self.asked, "guid": f"g-{self.asked}", "delivered_at": "2026-12-01T12:00:00Z", "event": "push"}
        return {"link": f'<https://api.github.com{path}&cursor={self.asked}>; rel="next"'}, [item]


def test_more_than_are_looked_through_show_in_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook_deliveries, "_MOST_PAGES", 3)
    endless = EndlessList()
    with capture_logs() as logs:
        assert list(missed(cast("Clients", endless), SINCE, set)) == []
    assert endless.asked == 3
    [told] = logs
    assert (told["event"], told["log_level"]) == ("sweep.too_many", "warning")
    assert told["since"] == "2026-12-01T00:00:00+00:00"

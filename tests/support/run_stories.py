"""How the runs of a whole run's kinds begin, on acrouter's local GitHub."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

from bot.demo.hub.server import LocalHub

_numbers = count(1)
_LOG = "##[group]Run pytest\nE   assert 5 == 8\nFAILED tests/test_cart.py::test_total\n##[error]exit code 1\n"


@dataclass(frozen=True)
class Story:
    name: str
    config: str
    """`.acrouter.yml` of the repository; empty: none."""
    begin: Callable[[LocalHub], int]
    """Asks for work and returns the number of the issue or PR that it is about."""


def _label_an_issue(hub: LocalHub) -> int:
    number = hub.open_issue("The total is wrong", "It leaves the first price out.")
    hub.label(number, "acrouter")
    return number


def _pull_request(hub: LocalHub) -> tuple[int, str, str]:
    branch = f"feature-{next(_numbers)}"
    sha = hub.push(branch, {f"{branch}.txt": "a\n"}, by="contributor")
    return hub.open_pull_request("Totals", head=branch, by="contributor"), branch, sha


def _ask_on_a_pull_request(hub: LocalHub) -> int:
    number, _, _ = _pull_request(hub)
    hub.review(number, "CHANGES_REQUESTED", body="The first price is left out.")
    hub.comment(number, "/route fix")
    return number


def _let_ci_fail(hub: LocalHub) -> int:
    number, branch, sha = _pull_request(hub)
    hub.fail_ci(sha, branch, jobs=[("test", _LOG)])
    return number


ISSUE = Story("a labelled issue", "", _label_an_issue)
PULL_REQUEST = Story("`/route fix` on a PR", "", _ask_on_a_pull_request)
CI_FAILURE = Story(
    "a failed CI run of a PR, run once more, the fix pushed to its branch",
    "on_ci_failure: true\npush_fixes: true\n",
    _let_ci_fail,
)
STORIES = (ISSUE, PULL_REQUEST, CI_FAILURE)

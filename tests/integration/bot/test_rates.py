"""GitHub's rate limit as the dashboard knows it, by the headers of a GitHub that nobody here wrote."""

import pytest

from bot.dashboard.rates import RateWatch
from store.database import Database
from store.settings import Settings
from store.tables import Installation, Repository
from tests.support.github import faults
from tests.support.github.server import GitHubServer
from workers.ports import RepositoryRef

pytestmark = pytest.mark.node


def said(left: int, limit: int = 5000) -> faults.Answer:
    headers = {"x-ratelimit-limit": str(limit), "x-ratelimit-remaining": str(left), "x-ratelimit-reset": "1800000000"}
    core = {"limit": limit, "remaining": left, "reset": 1_800_000_000, "used": limit - left}
    return faults.Answer(200, {"resources": {"core": core, "search": core}, "rate": core}, headers)


def test_what_github_says_is_known_and_forgotten_when_it_says_nothing(
    shop: GitHubServer, settings: Settings, repository: RepositoryRef, sqlite_database: Database
) -> None:
    with sqlite_database.session() as session:
        session.add(Installation(id=repository.installation_id, account="acme"))
        session.add(Installation(id=99, account="left", removed=True))
        session.flush()
        for number, installation in ((repository.id, repository.installation_id), (repository.id + 1, 99)):
            session.add(Repository(id=number, installation_id=installation, full_name=repository.full_name))
    watch = RateWatch(settings, sqlite_database)
    shop.on("GET", "/rate_limit$", said(321))
    watch.ask()
    [rates] = watch.last()
    assert (rates.account, rates.left, rates.limit, rates.resets) == ("acme", 321, 5000, 1_800_000_000.0)
    assert rates.scarce

    shop.on("GET", "/rate_limit$", said(4000))
    watch.ask()
    assert [(one.left, one.scarce) for one in watch.last()] == [(4000, False)]

    shop.on("GET", "/rate_limit$", faults.Answer(502, "Bad gateway", {}))
    watch.ask()
    assert watch.last() == ()

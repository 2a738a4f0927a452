"""Offers a configuration to a repository, as a PR, before anything happens there."""

import structlog
from sqlmodel import col, select

from store.repo_config import CONFIG_FILE
from store.repo_yaml import RepositoryConfigurationError
from store.tables import Repository
from store.types import utc_now
from templates import render
from workers.caps import installation_caps
from workers.configuration import ORGANISATION_REPOSITORY, in_force
from workers.errors import ForgeError, ForgeTemporary
from workers.limits import operators_limits
from workers.money import to_usd
from workers.ports import Forge, PullRequestInfo, RepositoryRef
from workers.runtime import Runtime

_log = structlog.get_logger(__name__)

BRANCH = "acrouter/configure"
_BATCH = 5
"""Repositories a round: an organisation's hundreds do not run into GitHub's secondary limits."""


def propose_everywhere(runtime: Runtime, forge: Forge) -> None:
    """Offer a configuration to repositories that have neither one nor an offer.

    Raises:
        ForgeTemporary: GitHub cannot take more now; the others are for the next round.
    """
    if runtime.settings.onboarding == "off":
        return
    for repository in _not_asked(runtime):
        try:
            propose(runtime, forge, repository)
        except ForgeTemporary:
            raise
        except ForgeError as error:  # an empty or an archived repository takes no PR
            _log.warning("onboarding.refused", repository=repository.full_name, error=str(error))
            _asked(runtime, repository)


def propose(runtime: Runtime, forge: Forge, repository: RepositoryRef) -> PullRequestInfo | None:
    """Return the PR that proposes an `.acrouter.yml`, opened now where there has never been one.

    None where the repository needs none. One that a person closed is not opened again.

    Raises:
        ForgeTemporary, ForgeError: GitHub did not take it.
    """
    pull = None
    if not _needs_none(runtime, forge, repository):
        pull = forge.find_pull_request(repository, BRANCH)
        if pull is None:
            pull = _open(runtime, forge, repository)
    _asked(runtime, repository)
    return pull


def _needs_none(runtime: Runtime, forge: Forge, repository: RepositoryRef) -> bool:
    try:
        return in_force(runtime.database, forge, repository, runtime.settings).onboarded
    except RepositoryConfigurationError:
        return True  # there is one; that it has a mistake is told elsewhere


def _open(runtime: Runtime, forge: Forge, repository: RepositoryRef) -> PullRequestInfo:
    settings = runtime.settings
    with runtime.database.session() as session:
        limits = operators_limits(session, settings)
        caps = [(cap.name, to_usd(cap.limit_micros)) for cap in installation_caps(limits)]
    return forge.propose_file(
        repository,
        branch=BRANCH,
        path=CONFIG_FILE,
        text=render("onboarding/acrouter.yml.j2", label=settings.trigger_label, budget_usd=settings.task_budget_usd),
        title="Configure acrouter",
        body=render(
            "onboarding/body.md.j2",
            label=settings.trigger_label,
            budget_usd=settings.task_budget_usd,
            caps=caps,
            models=runtime.pool.names,
        ),
    )


def _not_asked(runtime: Runtime) -> list[RepositoryRef]:
    with runtime.database.session() as session:
        rows = session.exec(
            select(Repository)
            .where(
                col(Repository.active).is_(True),
                col(Repository.onboarding_at).is_(None),
                ~col(Repository.full_name).endswith(f"/{ORGANISATION_REPOSITORY}"),
            )
            .order_by(col(Repository.id))
            .limit(_BATCH)
        ).all()
    return [RepositoryRef(row.id, row.installation_id, row.full_name) for row in rows]


def _asked(runtime: Runtime, repository: RepositoryRef) -> None:
    with runtime.database.session() as session:
        row = session.get(Repository, repository.id)
        if row is not None and row.onboarding_at is None:
            row.onboarding_at = utc_now()
            session.add(row)

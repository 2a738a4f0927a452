"""The configuration that is in force in a repository: the default branch's `.acrouter.yml` under its organisation's.

A file with a mistake changes nothing: the last valid one, kept in the database, stays in force. Where there has never
been a valid one nothing starts, because a mistyped limit must not mean "no limit".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from sqlmodel import Session, col, select
from sqlmodel.sql.expression import SelectOfScalar

from store.database import Database
from store.image_rules import check_images
from store.repo_config import CONFIG_FILE, RepositoryConfig, parse_repository_config, under
from store.repo_yaml import Mistake, RepositoryConfigurationError
from store.settings import Settings
from store.tables import ConfigurationFile, Repository
from store.types import utc_now
from store.upsert import put
from workers.ports import Forge, RepositoryRef

ORGANISATION_REPOSITORY = ".github"
"""The repository whose `.acrouter.yml` holds for the whole organisation, as GitHub's own community files do
(https://docs.github.com/en/communities/setting-up-your-project-for-healthy-contributions/creating-a-default-community-health-file)."""


@dataclass(frozen=True)
class InForce:
    """What holds in a repository now."""

    config: RepositoryConfig
    onboarded: bool
    """The repository has a file of its own, or its organisation or the operator asks for none."""
    mistakes: tuple[Mistake, ...] = ()
    """Of the newest file, where an older one holds instead."""


@dataclass(frozen=True)
class _File:
    config: RepositoryConfig | None
    mistakes: tuple[Mistake, ...] = ()


def in_force(database: Database, forge: Forge, repository: RepositoryRef, settings: Settings) -> InForce:
    """Read the files as they are on the default branches now.

    Raises:
        RepositoryConfigurationError: the file, or the organisation's, has a mistake and there has been no valid one.
        ForgeTemporary, ForgeError: GitHub could not tell.
    """
    own = _newest(database, forge, repository, settings)
    above = _organisation(database, repository)
    if above is not None and above.id == repository.id:
        default = own.config
    else:
        default = _newest(database, forge, above, settings).config if above is not None else None
    config = under(default or RepositoryConfig(), own.config)
    wanted = config.organisation.onboarding or settings.onboarding
    return InForce(config, own.config is not None or wanted == "off", own.mistakes)


def kept(session: Session, repository_id: int | None) -> RepositoryConfig:
    """Return the configuration as it was when it was read last; nothing is asked of GitHub."""
    repository = session.get(Repository, repository_id) if repository_id is not None else None
    if repository is None:
        return RepositoryConfig()
    owner = repository.full_name.split("/", 1)[0]
    above = session.exec(_organisation_query(repository.installation_id, owner)).first()
    default = _parsed(session, above.id) if above is not None else None
    return under(default or RepositoryConfig(), _parsed(session, repository.id))


def kept_of_all(session: Session, repositories: Sequence[Repository]) -> dict[int, RepositoryConfig]:
    """Return what `kept` returns for each of all repositories, by its id. One query, however many there are."""
    files = {one: _parsed_or_none(text) for one, text in session.exec(_FILES).all()}
    above = {
        (row.installation_id, row.full_name): row.id
        for row in repositories
        if row.active and row.full_name.endswith(f"/{ORGANISATION_REPOSITORY}")
    }
    found = {}
    for row in repositories:
        owner = row.full_name.split("/", 1)[0]
        home = above.get((row.installation_id, f"{owner}/{ORGANISATION_REPOSITORY}"))
        default = files.get(home) if home is not None else None
        found[row.id] = under(default or RepositoryConfig(), files.get(row.id))
    return found


def _newest(database: Database, forge: Forge, repository: RepositoryRef, settings: Settings) -> _File:
    """Read a repository's own file and keep it if it is valid; one with a mistake gives the last valid one."""
    asked_at = utc_now()
    text = forge.file_text(repository, CONFIG_FILE, "")
    if text is None and _is_kept(database, repository.id):
        # Rules that hold must not end by one wrong answer.
        text = forge.file_text(repository, CONFIG_FILE, "")
    if text is None:
        _keep(database, repository.id, None, asked_at)
        return _File(None)
    try:
        config = _parse(text)
        check_images(config, text, settings.sandbox_images)
    except RepositoryConfigurationError as error:
        with database.session() as session:
            last = _parsed(session, repository.id)
        if last is None:
            raise
        return _File(last, error.mistakes)
    _keep(database, repository.id, text, asked_at)
    return _File(config)


def _is_kept(database: Database, repository_id: int) -> bool:
    with database.session() as session:
        return session.get(ConfigurationFile, repository_id) is not None


def _keep(database: Database, repository_id: int, text: str | None, asked_at: datetime) -> None:
    """Keep a valid file, or that there is none, unless somebody kept what was read later."""
    with database.session() as session:
        row = session.exec(
            select(ConfigurationFile).where(ConfigurationFile.repository_id == repository_id).with_for_update()
        ).one_or_none()
        if (row.text if row is not None else None) == text or (row is not None and row.updated_at > asked_at):
            return
        if text is None:
            session.delete(row)
        else:
            kept = ConfigurationFile(repository_id=repository_id, text=text, updated_at=asked_at)
            # Of two that found no row the one that comes second may have read first.
            put(session, kept, changing=("text", "updated_at"), where=col(ConfigurationFile.updated_at) <= asked_at)


def _organisation(database: Database, repository: RepositoryRef) -> RepositoryRef | None:
    owner = repository.full_name.split("/", 1)[0]
    with database.session() as session:
        row = session.exec(_organisation_query(repository.installation_id, owner)).first()
    return RepositoryRef(row.id, row.installation_id, row.full_name) if row is not None else None


def _organisation_query(installation_id: int, owner: str) -> SelectOfScalar[Repository]:
    """The repository whose file holds for the whole organisation, itself included."""
    return select(Repository).where(
        Repository.installation_id == installation_id,
        Repository.full_name == f"{owner}/{ORGANISATION_REPOSITORY}",
        col(Repository.active).is_(True),
    )


def _parsed(session: Session, repository_id: int) -> RepositoryConfig | None:
    row = session.get(ConfigurationFile, repository_id)
    return None if row is None else _parsed_or_none(row.text)


def _parsed_or_none(text: str) -> RepositoryConfig | None:
    try:
        return _parse(text)
    except RepositoryConfigurationError:  # an older acrouter knew a key that this one does not
        return None


_parse = lru_cache(maxsize=4096)(parse_repository_config)
_FILES = select(ConfigurationFile.repository_id, ConfigurationFile.text)

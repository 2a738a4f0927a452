"""Keeps the rows of installations and repositories level with what GitHub tells."""

from collections.abc import Iterable

from sqlalchemy import String, cast, literal
from sqlmodel import Session, col, select, update

from bot.events import RepositoryFact
from routing.evidence_store import rename_repository
from store.database import Database
from store.tables import Installation, Repository, Task
from store.types import utc_now
from store.upsert import put
from workers.ports import Forge, RepositoryRef


def know_repository(database: Database, forge: Forge | None, fact: RepositoryFact) -> RepositoryRef | None:
    """Bring a repository's row up to date and return it, or None where the App is not installed there (any more).

    Webhooks come in any order, and "suspend" may be the last to come though "unsuspend" followed it: GitHub, which
    sends nothing from a suspended installation, is asked whether it is one still.
    """
    with database.session() as session:
        row = session.get(Repository, fact.id)
        installation_id = fact.installation_id or (row.installation_id if row else None)
        if installation_id is None:
            return None
        owner = fact.full_name.split("/", 1)[0]
        put(session, Installation(id=installation_id, account=owner), changing=())
        installation = session.get_one(Installation, installation_id, populate_existing=True)
        if installation.removed:
            return None
        if not installation.suspended:
            _put_repository(session, fact, installation_id)
            return RepositoryRef(fact.id, installation_id, fact.full_name)
    if forge is None or forge.is_suspended(installation_id):
        return None
    put_installation(database, installation_id, owner, suspended=False, removed=False)
    return know_repository(database, forge, fact)


def put_installation(database: Database, installation_id: int, account: str, *, suspended: bool, removed: bool) -> None:
    """Write an installation's row. A removed one stays removed: GitHub gives a new installation a new id."""
    with database.session() as session:
        put(session, Installation(id=installation_id, account=account), changing=())
        row = session.get_one(Installation, installation_id, populate_existing=True)
        row.account = account or row.account
        row.removed = row.removed or removed
        row.suspended = suspended
        row.updated_at = utc_now()
        session.add(row)
        if row.removed:
            session.execute(
                update(Repository).where(col(Repository.installation_id) == installation_id).values(active=False)
            )


def put_repositories(
    database: Database, installation_id: int, added: Iterable[RepositoryFact], removed_ids: Iterable[int]
) -> None:
    """Write which repositories an installation covers."""
    with database.session() as session:
        installation = session.get_one(Installation, installation_id)
        if not installation.removed:
            for fact in added:
                _put_repository(session, fact, installation_id)
        session.execute(
            update(Repository)
            .where(
                col(Repository.id).in_(list(removed_ids)),
                # It may have moved to another installation in the meantime.
                col(Repository.installation_id) == installation_id,
            )
            .values(active=False, updated_at=utc_now())
        )


def _put_repository(session: Session, fact: RepositoryFact, installation_id: int) -> None:
    _follow_owner(session, fact, installation_id)
    _follow_name(session, fact)
    row = Repository(
        id=fact.id,
        installation_id=installation_id,
        full_name=fact.full_name,
        private=fact.private,
        active=True,
        default_branch=fact.default_branch,
        updated_at=utc_now(),
    )
    known = ("default_branch",) if fact.default_branch else ()
    put(session, row, changing=("installation_id", "full_name", "private", "active", "updated_at", *known))


def _follow_owner(session: Session, fact: RepositoryFact, installation_id: int) -> None:
    """Where an installation's account has another name than before, give all of its repositories that owner.

    They find each other by it: the organisation's rules stand in one of them, which may be silent for months.
    """
    before, owner = session.get(Repository, fact.id), fact.full_name.split("/", 1)[0]
    former = before.full_name.split("/", 1)[0] if before is not None else owner
    if before is None or before.installation_id != installation_id or former == owner:
        return  # what is in another installation than before was transferred
    theirs = session.exec(select(Repository).where(Repository.installation_id == installation_id)).all()
    for row in theirs:
        if row.full_name.startswith(f"{former}/"):
            row.full_name = f"{owner}/{row.full_name.partition('/')[2]}"
            session.add(row)
    installation = session.get_one(Installation, installation_id)
    installation.account = owner
    session.add(installation)
    session.flush()


def _follow_name(session: Session, fact: RepositoryFact) -> None:
    """Keep what is remembered of a repository, titles of private issues among it, apart from what is called so later.

    It is told by the name: where another repository has had it, that has another one by now, which nobody has told yet.
    """
    named = session.exec(
        select(Repository).where((col(Repository.id) == fact.id) | (col(Repository.full_name) == fact.full_name))
    ).all()
    for row in named:
        present = fact.full_name if row.id == fact.id else f"{fact.full_name} until {utc_now():%Y-%m-%d}"
        if row.full_name == present:
            continue
        theirs = select(literal("task:") + cast(Task.id, String)).where(Task.repository_id == row.id)
        rename_repository(session, row.full_name, present, theirs)
        row.full_name = present  # GitHub says with each token what it is called
        session.add(row)
    session.flush()

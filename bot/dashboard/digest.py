"""The weekly digest, a comment or an issue: what merged, what it cost, which model gained or lost, what to change."""

import re
from dataclasses import dataclass
from datetime import datetime

import structlog
from sqlmodel import Session, col, func, select

from bot.dashboard.facts import DAY_S, Facts
from bot.dashboard.facts_store import read_facts
from bot.dashboard.overview import Overview, overview
from bot.dashboard.periods import Period, iso
from bot.dashboard.stats import ModelNumbers
from store.errors import ConfigurationError
from store.settings import Settings
from store.tables import AuditEntry, Repository
from store.types import utc_now
from templates import render
from workers.errors import ForgeError
from workers.ports import Forge, RepositoryRef
from workers.runtime import Runtime
from workers.sweeps import complete, take_turn

_log = structlog.get_logger(__name__)
_PLACE = re.compile(r"([A-Za-z0-9._-]+/[A-Za-z0-9._-]+)(?:#([1-9][0-9]{0,9}))?")
_ACTION = "weekly digest"
_ENOUGH = 10
_MONDAY = 4
"""Days since 1970, modulo 7, of a Monday."""


@dataclass(frozen=True)
class Advice:
    """Something to change; the template has the words."""

    kind: str
    """`dominated`, `unusable` or `drift`."""
    model: str
    other: str = ""
    """The model that does better, where there is one."""


def parse_place(text: str) -> tuple[str, int | None]:
    """Read OWNER/NAME#NUMBER, an issue to comment on, or OWNER/NAME, where each week gets an issue of its own.

    Raises:
        ConfigurationError: it is neither.
    """
    found = _PLACE.fullmatch(text.strip())
    if found is None:
        raise ConfigurationError(
            f"ACROUTER_DIGEST_ISSUE: '{text}' is no place. Write OWNER/NAME#NUMBER for a comment on that issue each "
            "week, or OWNER/NAME for a new issue each week."
        )
    return found[1], int(found[2]) if found[2] else None


class WeeklyDigest:
    """Writes last week's digest once, on or after its Monday. Called by the reconciler, however often.

    One process at a time writes; where GitHub refuses, the next try is a sweep later.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._name, self._number = parse_place(runtime.settings.digest_issue)
        self._done = ""

    def __call__(self) -> None:
        week = last_week(utc_now())
        label = iso(week.first)
        if label == self._done:
            return
        with self._runtime.database.reading() as session:
            if _written(session, label):
                self._done = label
                return
            repository = session.exec(
                select(Repository).where(func.lower(Repository.full_name) == self._name.lower())
            ).first()
        if repository is None or self._runtime.forge is None:
            _log.warning("digest.no_repository", repository=self._name)
            self._done = label
            return
        turn = take_turn(self._runtime.database, "digest", self._runtime.settings.sweep_every_s)
        if turn is None:
            return
        body = digest_text(read_facts(self._runtime.database), week, self._runtime.settings)
        reference = RepositoryRef(repository.id, repository.installation_id, repository.full_name)
        try:
            _write(self._runtime.forge, reference, self._number, week, body)
        except ForgeError as error:  # the next turn tries again
            _log.warning("digest.not_written", error=str(error))
            return
        with self._runtime.database.session() as session:
            session.add(AuditEntry(actor="acrouter", action=_ACTION, target=label))
        complete(self._runtime.database, turn)
        self._done = label


def last_week(now: datetime) -> Period:
    """Return the last week from Monday to Sunday that is over, in UTC."""
    today = int(now.timestamp() // DAY_S)
    monday = today - (today - _MONDAY) % 7
    return Period(monday - 7, monday - 1)


def digest_text(facts: Facts, week: Period, settings: Settings) -> str:
    """Return the digest as Markdown."""
    view = overview(facts, week, settings)
    return render(
        "comments/digest.md.j2",
        marker=_marker(week),
        view=view,
        first=iso(week.first),
        last=iso(week.last),
        advice=advice(view),
    )


def advice(view: Overview) -> list[Advice]:
    """Return what a week's numbers say should change; nothing is said of few cases."""
    found = [
        Advice("dominated", row.model, better.model)
        for row in view.models
        if (better := _clearly_better(row, view.models)) is not None
    ]
    found += [
        Advice("unusable", row.model) for row in view.models if row.attempts >= 5 and row.unusable * 5 >= row.attempts
    ]
    found += [Advice("drift", row.model) for row in view.models if row.drifts and row.moved and row.moved.value < 0]
    return found


def _write(forge: Forge, repository: RepositoryRef, number: int | None, week: Period, body: str) -> None:
    if number is not None:
        forge.reply(repository, number, _marker(week), body)
        return
    title = render("comments/digest_title.txt.j2", first=iso(week.first), last=iso(week.last))
    forge.open_issue(repository, _marker(week), title.strip(), body)


def _marker(week: Period) -> str:
    return f"<!-- acrouter:digest={iso(week.first)} -->"


def _clearly_better(row: ModelNumbers, rows: tuple[ModelNumbers, ...]) -> ModelNumbers | None:
    """A model that is cheaper, and whose success is higher by more than chance explains."""
    if row.success.cases < _ENOUGH or row.usd_per_attempt is None:
        return None
    for other in rows:
        cheaper = other.usd_per_attempt is not None and other.usd_per_attempt < row.usd_per_attempt
        if other.success.cases >= _ENOUGH and cheaper and other.success.low > row.success.high:
            return other
    return None


def _written(session: Session, label: str) -> bool:
    query = select(AuditEntry.id).where(AuditEntry.action == _ACTION, col(AuditEntry.target) == label)
    return session.exec(query).first() is not None

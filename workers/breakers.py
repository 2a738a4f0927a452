"""A circuit breaker for each model's endpoint, shared by all workers through the database.

Closed: the model is used. After `FAILURES` attempts in a row whose endpoint failed it opens: the router passes the
model over. When its pause ends it is half-open: one attempt tries the model, the others pass it over until that one has
ended or another pause is over. Each further failure doubles the pause, unless its attempt began before the last one:
that is the same outage. An attempt that the endpoint answers closes the breaker.

M. T. Nygard, "Release It!", 2nd edition (2018), chapter 5.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

import structlog
from sqlmodel import Session, select

from store.scrub import scrub
from store.tables import ModelEndpoint
from store.types import utc_now
from workers.locks import take_turn

FAILURES = 3
"""In a row, before a model is passed over."""
_FIRST_PAUSE = timedelta(minutes=1)
_LONGEST_PAUSE = timedelta(minutes=30)
_LONGEST_ERROR = 1000
_log = structlog.get_logger(__name__)


class Breakers(Protocol):
    """What the pipeline asks and tells of models' endpoints, within its own transactions."""

    def open(self, session: Session) -> Mapping[str, datetime]:
        """Return the models to pass over, each with the moment from which it may be tried again."""

    def tried(self, session: Session, model: str) -> None:
        """Take note that an attempt begins."""

    def failed(self, session: Session, model: str, error: str, began: datetime) -> None:
        """Take note that what began at `began` ended because its model's endpoint could not be used."""

    def refused(self, session: Session, model: str, error: str) -> None:
        """Take note that the endpoint did not take a request: for this one's words, or as it would any."""

    def answered(self, session: Session, model: str) -> None:
        """Take note that the model's endpoint answered."""


@dataclass(frozen=True)
class EndpointBreakers:
    """The breakers that stand in the table of endpoints."""

    now: Callable[[], datetime] = utc_now

    def open(self, session: Session) -> Mapping[str, datetime]:
        now, rows = self.now(), session.exec(select(ModelEndpoint)).all()
        return {row.model: until for row in rows if (until := passed_over_until(row, now)) is not None}

    def tried(self, session: Session, model: str) -> None:
        row = _locked(session, model)
        if row is not None and row.retry_at is not None:
            row.retry_at = self.now() + pause(row.failures)
            session.add(row)

    def failed(self, session: Session, model: str, error: str, began: datetime) -> None:
        now = self.now()
        row = _locked(session, model) or ModelEndpoint(model=model, failed_at=now)
        if row.failures < FAILURES or began >= row.failed_at:
            row.failures += 1
            row.failed_at = now
        self._keep(session, row, error, pause(row.failures))

    def refused(self, session: Session, model: str, error: str) -> None:
        """Three in a row open the breaker, as other failures do, but further ones do not double the pause: one
        repository's words may be what is refused, and the next repository's are not.
        """
        now = self.now()
        row = _locked(session, model) or ModelEndpoint(model=model, failed_at=now)
        if row.failures < FAILURES:
            row.failures += 1
            row.failed_at = now
        self._keep(session, row, error, _FIRST_PAUSE)

    def _keep(self, session: Session, row: ModelEndpoint, error: str, length: timedelta) -> None:
        row.error = scrub(error)[:_LONGEST_ERROR]
        if row.failures >= FAILURES:
            row.retry_at = self.now() + length
            _log.warning("endpoint.passed_over", model=row.model, failures=row.failures, until=row.retry_at.isoformat())
        session.add(row)
        session.flush()

    def answered(self, session: Session, model: str) -> None:
        row = _locked(session, model)
        if row is None:
            return
        if row.retry_at is not None:
            _log.info("endpoint.answers_again", model=model, failures=row.failures)
        session.delete(row)
        session.flush()


def pause(failures: int) -> timedelta:
    """Return for how long a model is passed over after so many failures in a row."""
    doublings = min(max(failures - FAILURES, 0), 10)
    return min(_FIRST_PAUSE * (1 << doublings), _LONGEST_PAUSE)


def passed_over_until(row: ModelEndpoint, now: datetime) -> datetime | None:
    """Return until when a model is passed over; None where it is not."""
    return row.retry_at if row.retry_at is not None and row.retry_at > now else None


def _locked(session: Session, model: str) -> ModelEndpoint | None:
    take_turn(session, f"endpoint:{model}")  # a row that is not there yet cannot be locked
    return session.get(ModelEndpoint, model)

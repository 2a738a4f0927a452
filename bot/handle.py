"""Turns a stored delivery into what it asks for: load, parse, and one `match` to one module a behaviour."""

from datetime import datetime, timedelta
from typing import assert_never

import structlog
from sqlmodel import col, update

from bot import claims
from bot.claims import Claim
from bot.errors import PayloadError
from bot.events import (
    CheckRunRerequested,
    CheckSuiteCompleted,
    CheckSuiteRerequested,
    CommentCreated,
    Event,
    Ignored,
    InstallationChanged,
    IssueClosed,
    IssueLabeled,
    Ping,
    PullRequestClosed,
    PullRequestReopened,
    PullRequestRetargeted,
    PullRequestSynchronized,
    Pushed,
    RepositoriesChanged,
    RepositoryEvent,
    ReviewSubmitted,
    WorkflowJobCompleted,
    WorkflowRunCompleted,
    parse,
)
from bot.handlers import (
    branches,
    check_buttons,
    ci,
    closed_issues,
    closed_pulls,
    comments,
    installations,
    labels,
    reopened_pulls,
    retargeted,
    reviews,
)
from bot.handlers.context import Context
from bot.inbox import decode
from bot.repositories import know_repository
from store.database import Database
from store.scrub import scrub
from store.states import DeliveryState
from store.tables import Delivery
from store.tracing import span
from store.types import utc_now
from workers.errors import ForgeTemporary, TargetGone
from workers.ports import DeliveryHandler
from workers.runtime import Runtime

_log = structlog.get_logger(__name__)

MAX_TRIES = 5
"""A delivery that keeps crashing its handler is given up after so many."""
_LONGEST_WAIT = timedelta(hours=24)
"""For GitHub to answer again; later the event is of no use to anybody."""


def make_handler(runtime: Runtime) -> DeliveryHandler:
    """Return the function that handles deliveries with this runtime."""

    def handle(delivery_id: int) -> None:
        handle_delivery(runtime, delivery_id)

    return handle


def handle_delivery(runtime: Runtime, delivery_id: int) -> None:
    """Handle a delivery once. Called again, or while another process handles it, it does nothing.

    A crash leaves the delivery `received`, so that the reconciler brings it back; what was done until then is found
    and not done again.
    """
    claim = _claim(runtime.database, delivery_id, runtime.settings.lease_s)
    if claim is None:
        return
    with (
        structlog.contextvars.bound_contextvars(delivery=claim.guid, event=claim.event),
        span("handle", claim.guid, event=claim.event),
    ):
        try:
            with claims.held(runtime.database, claim, runtime.settings.lease_s):
                reason = dispatch(runtime, claim.guid, parse(claim.event, decode(claim.payload)))
        except PayloadError as error:
            _finish(runtime.database, claim, DeliveryState.FAILED, str(error))
        except TargetGone as error:
            _finish(runtime.database, claim, DeliveryState.IGNORED, str(error))
        except ForgeTemporary as error:
            _wait(runtime.database, claim, error)
        except Exception as error:  # noqa: BLE001  (it is kept in the delivery and logged)
            _log.exception("delivery.crashed", tries=claim.tries)
            _retry(runtime.database, claim, error)
        else:
            state = DeliveryState.HANDLED if reason is None else DeliveryState.IGNORED
            _finish(runtime.database, claim, state, reason or "")


def dispatch(runtime: Runtime, guid: str, event: Event) -> str | None:
    """Do what an event asks for. Returns None, or why nothing was done."""
    match event:
        case Ignored(reason):
            return reason
        case Ping():
            pass
        case InstallationChanged():
            installations.changed(runtime.database, runtime.queue, event)
        case RepositoriesChanged():
            installations.repositories_changed(runtime.database, runtime.queue, event)
        case _:
            return _dispatch_in_repository(runtime, guid, event)
    return None


def _dispatch_in_repository(  # noqa: PLR0911, PLR0912  (one line an event)
    runtime: Runtime, guid: str, event: RepositoryEvent
) -> str | None:
    repository = know_repository(runtime.database, runtime.forge, event.repository)
    if repository is None:
        return "the App is not installed in this repository"
    if runtime.forge is None:
        return "this process works without GitHub"
    context = Context(runtime, runtime.forge, repository, guid)
    match event:
        case IssueLabeled():
            return labels.issue_labeled(context, event)
        case IssueClosed():
            return closed_issues.issue_closed(context, event)
        case CommentCreated():
            return comments.comment_created(context, event)
        case PullRequestClosed():
            return closed_pulls.pull_request_closed(context, event)
        case PullRequestReopened():
            return reopened_pulls.pull_request_reopened(context, event)
        case PullRequestRetargeted():
            return retargeted.pull_request_retargeted(context, event)
        case CheckRunRerequested():
            return check_buttons.check_run_rerequested(context, event)
        case CheckSuiteRerequested():
            return check_buttons.check_suite_rerequested(context, event)
        case WorkflowJobCompleted():
            return "its workflow run tells when all of its jobs have ended"
        case PullRequestSynchronized():
            return branches.pull_request_synchronized(context, event)
        case Pushed():
            return branches.pushed(context, event)
        case ReviewSubmitted():
            return reviews.review_submitted(context, event)
        case CheckSuiteCompleted():
            return ci.check_suite_completed(context, event)
        case WorkflowRunCompleted():
            return ci.workflow_run_completed(context, event)
        case _:
            assert_never(event)


def _claim(database: Database, delivery_id: int, lease_s: float) -> Claim | None:
    claim = claims.take(database, delivery_id, lease_s)
    if claim is not None and claim.tries > MAX_TRIES:
        _finish(database, claim, DeliveryState.FAILED, f"its handler was lost {MAX_TRIES} times")
        return None
    return claim


def _wait(database: Database, claim: Claim, error: ForgeTemporary) -> None:
    """GitHub cannot answer now. That is nobody's fault and costs no try."""
    if utc_now() - claim.received_at > _LONGEST_WAIT:
        _finish(database, claim, DeliveryState.FAILED, f"given up after a day: {error}")
        return
    _log.warning("delivery.waits", error=str(error))
    _put_back(database, claim, str(error), error.retry_at or utc_now() + timedelta(seconds=10), claim.tries - 1)


def _retry(database: Database, claim: Claim, error: Exception) -> None:
    reason = f"{type(error).__name__}: {error}"
    if claim.tries >= MAX_TRIES:
        _finish(database, claim, DeliveryState.FAILED, f"given up after {claim.tries} tries. The last one: {reason}")
        return
    _put_back(database, claim, reason, utc_now() + timedelta(seconds=2**claim.tries), claim.tries)


def _put_back(database: Database, claim: Claim, reason: str, not_before: datetime, tries: int) -> None:
    _write(database, claim, {"reason": scrub(reason), "not_before": not_before, "tries": tries})


def _finish(database: Database, claim: Claim, state: DeliveryState, reason: str) -> None:
    _log.info("delivery.done", state=state.value, reason=reason)
    _write(
        database,
        claim,
        {"state": state, "reason": scrub(reason), "handled_at": utc_now(), "not_before": None},
    )


def _write(database: Database, claim: Claim, values: dict[str, object]) -> None:
    with database.session() as session:
        session.execute(
            update(Delivery)
            .where(col(Delivery.id) == claim.id, col(Delivery.state) == DeliveryState.RECEIVED)
            .values(**values)
        )

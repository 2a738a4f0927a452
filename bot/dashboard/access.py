"""Who asks, and whether they may: for pages by the session's cookie, for machines by a token."""

from typing import Literal
from urllib.parse import urlsplit

from fastapi import Request

from bot.dashboard.board import Board
from bot.dashboard.errors import DashboardError
from bot.dashboard.roles import Role, Viewer
from bot.dashboard.secrets import same
from bot.dashboard.sessions import COOKIE
from bot.dashboard.tokens import holds


class NotSignedInError(DashboardError):
    """Nobody is signed in."""


class ForbiddenError(DashboardError):
    """Somebody is signed in and may not do this."""


class NotFoundError(DashboardError):
    """It is not there, or may not be known of."""


def viewer_of(board: Board, request: Request, needed: Role = Role.VIEWER) -> Viewer:
    """Return who is signed in.

    Raises:
        NotSignedInError, ForbiddenError
    """
    cookie = request.cookies.get(COOKIE, "")
    viewer = board.sessions.find(cookie, board.github) if cookie else None
    if viewer is None:
        raise NotSignedInError("Sign in first.")
    if not viewer.may(needed):
        raise ForbiddenError(f"This needs the role {needed}; yours is {viewer.role}. An operator can change that.")
    return viewer


def actor_of(board: Board, request: Request, csrf: str, needed: Role) -> Viewer:
    """Return who asks for a change, after making sure that a page of this dashboard asked.

    Raises:
        NotSignedInError, ForbiddenError
    """
    viewer = viewer_of(board, request, needed)
    refuse_other_sites(request)
    if not same(csrf, viewer.csrf):
        raise ForbiddenError("The form is too old or came from elsewhere. Load the page again.")
    return viewer


def refuse_other_sites(request: Request) -> None:
    """Refuse a form that another site sent.

    Raises:
        ForbiddenError
    """
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != request.headers.get("host", ""):
        raise ForbiddenError("The form came from another site.")


def reader_of(board: Board, request: Request) -> Viewer:
    """Return who reads the JSON API or a CSV file: a token's holder, who sees everything, or who is signed in.

    Raises:
        NotSignedInError
    """
    token = _bearer(request)
    if not token:
        return viewer_of(board, request)
    return token_holder(board, token, "read")


def token_holder(board: Board, token: str, scope: Literal["read", "metrics"]) -> Viewer:
    """Return a token's holder.

    Raises:
        NotSignedInError: it is not alive or has not this scope.
    """
    name = holds(board.database, token, scope)
    if name is None:
        raise NotSignedInError(f"The token is unknown, ended, or without the scope '{scope}'.")
    return Viewer(f"token {name}", Role.VIEWER, None)


def metrics_reader(board: Board, request: Request) -> None:
    """Let only a token with the scope `metrics` pass.

    Raises:
        NotSignedInError
    """
    token_holder(board, _bearer(request), "metrics")


def _bearer(request: Request) -> str:
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""

"""Signing in and out: GitHub's web flow with state and PKCE, or this machine's one-time link."""

import ipaddress
import secrets
from http import HTTPStatus
from typing import Annotated
from urllib.parse import urlencode, urlsplit

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from bot.dashboard.access import actor_of, refuse_other_sites
from bot.dashboard.board import Board
from bot.dashboard.errors import SignInError
from bot.dashboard.roles import Role
from bot.dashboard.secrets import same
from bot.dashboard.sessions import COOKIE
from bot.dashboard.show import page
from bot.dashboard.tokens import use_link_word

_FLOW_COOKIE = "acrouter_sign_in"
_FLOW_LIFE_S = 600


def routes(board: Board) -> APIRouter:
    router = APIRouter(include_in_schema=False)
    secure = board.settings.public_url.startswith("https://")

    def failed(request: Request, problem: str, status: HTTPStatus) -> HTMLResponse:
        return page(
            board, request, "sign_in.html", None, "Sign in", status, problem=problem, github=board.github, query=""
        )

    def begin(cookie: str, path: str) -> Response:
        answer = RedirectResponse(path, HTTPStatus.SEE_OTHER)
        answer.set_cookie(
            COOKIE, cookie, max_age=board.sessions.life_s, httponly=True, samesite="lax", secure=secure, path="/"
        )
        answer.delete_cookie(_FLOW_COOKIE, path="/sign-in")
        return answer

    @router.get("/sign-in")
    def show(request: Request, next: str = "/overview") -> HTMLResponse:  # noqa: A002  (the customary name in addresses)
        return page(
            board,
            request,
            "sign_in.html",
            None,
            "Sign in",
            problem="",
            github=board.github,
            query=urlencode({"next": local_path(next)}),
        )

    @router.get("/sign-in/github")
    def to_github(request: Request, next: str = "/overview") -> Response:  # noqa: A002
        if board.github is None:
            return failed(request, "Sign-in with GitHub is not set up here.", HTTPStatus.NOT_FOUND)
        flow = {
            "state": secrets.token_urlsafe(24),
            "verifier": secrets.token_urlsafe(48),
            "next": local_path(next),
        }
        url = board.github.authorize_url(callback_url(board, request), flow["state"], flow["verifier"])
        answer = RedirectResponse(url, HTTPStatus.SEE_OTHER)
        answer.set_cookie(
            _FLOW_COOKIE,
            board.signer.sign(flow, "sign-in"),
            max_age=_FLOW_LIFE_S,
            httponly=True,
            samesite="lax",
            secure=secure,
            path="/sign-in",
        )
        return answer

    @router.get("/sign-in/callback")
    def from_github(request: Request, code: str = "", state: str = "") -> Response:
        flow = board.signer.read(request.cookies.get(_FLOW_COOKIE, ""), "sign-in", _FLOW_LIFE_S)
        if board.github is None or not isinstance(flow, dict) or not code or not same(state, str(flow["state"])):
            return failed(request, "This sign-in was not begun here, or too long ago. Start it again.", _REFUSED)
        try:
            token = board.github.exchange(code, callback_url(board, request), str(flow["verifier"]))
            rights = board.github.rights(token)
        except SignInError as error:
            return failed(request, str(error), _REFUSED)
        return begin(board.sessions.begin(rights, token), local_path(str(flow["next"])))

    @router.get("/sign-in/link/{word}")
    def show_link(request: Request, word: str) -> HTMLResponse:
        # A link that a program fetches ahead must not be used up by that: a person presses a button.
        return page(board, request, "link.html", None, "Sign in", word=word)

    @router.post("/sign-in/link")
    def use_link(request: Request, word: Annotated[str, Form()] = "") -> Response:
        refuse_other_sites(request)
        if not use_link_word(board.database, word):
            return failed(
                request,
                "This link was used or is too old. `acrouter dashboard` makes another one; a demo must start again.",
                _REFUSED,
            )
        return begin(board.sessions.begin_local(), "/overview")

    @router.post("/sign-out")
    def sign_out(request: Request, csrf: Annotated[str, Form()] = "") -> Response:
        actor_of(board, request, csrf, Role.VIEWER)
        board.sessions.end(request.cookies.get(COOKIE, ""))
        answer = RedirectResponse("/sign-in", HTTPStatus.SEE_OTHER)
        answer.delete_cookie(COOKIE, path="/")
        return answer

    return router


_REFUSED = HTTPStatus.FORBIDDEN


def local_path(path: str) -> str:
    """Return a path of this dashboard: whatever could lead elsewhere becomes the overview."""
    parts = urlsplit(path)
    plain = path.startswith("/") and not path.startswith("//") and "\\" not in path and path.isprintable()
    return path if plain and not parts.scheme and not parts.netloc else "/overview"


def callback_url(board: Board, request: Request) -> str:
    """Return where GitHub sends the browser back to: by the setting, since a Host header is anybody's.

    Raises:
        SignInError: the setting is missing, and this is not a loopback address.
    """
    base = board.settings.public_url.rstrip("/")
    if not base:
        host = request.url.hostname or ""
        if not is_loopback(host):
            raise SignInError("Sign-in needs ACROUTER_PUBLIC_URL, the address under which people reach this server.")
        base = f"{request.url.scheme}://{request.url.netloc}"
    return f"{base}/sign-in/callback"


def is_loopback(host: str) -> bool:
    """Return whether a host's name or address is this machine's own."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

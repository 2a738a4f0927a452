"""Puts the dashboard into a web application."""

from http import HTTPStatus
from urllib.parse import urlencode

from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.exception_handlers import http_exception_handler, request_validation_exception_handler
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from bot.dashboard import actions, api, export, metrics, pages, sign_in, task_pages
from bot.dashboard.access import ForbiddenError, NotFoundError, NotSignedInError
from bot.dashboard.board import Board, make_board
from bot.dashboard.errors import BadRequestError, SignInError
from bot.dashboard.headers import SecurityHeaders
from bot.dashboard.show import STATIC, page
from store.database import Database
from store.settings import Settings
from workers.ports import Queue

_PROBLEMS = {
    BadRequestError: (HTTPStatus.BAD_REQUEST, "That cannot be"),
    SignInError: (HTTPStatus.FORBIDDEN, "Not signed in"),
    ForbiddenError: (HTTPStatus.FORBIDDEN, "Not allowed"),
    NotFoundError: (HTTPStatus.NOT_FOUND, "Not found"),
}


def add_dashboard(app: FastAPI, settings: Settings, database: Database, queue: Queue) -> Board:
    """Add pages, API, files and metrics.

    Raises:
        ConfigurationError: a setting of the dashboard is wrong.
    """
    board = make_board(settings, database, queue)
    for part in (pages, task_pages, actions, sign_in, export, metrics):
        app.include_router(part.routes(board))
    app.mount("/api/v1", api.make_api(board))
    app.mount("/static", StaticFiles(directory=STATIC))
    app.add_middleware(SecurityHeaders, https=settings.public_url.startswith("https://"))
    _handle_problems(app, board)
    app.state.board = board
    board.facts.warm()
    return board


def _handle_problems(app: FastAPI, board: Board) -> None:
    @app.exception_handler(NotSignedInError)
    def ask_to_sign_in(request: Request, error: Exception) -> Response:
        if "authorization" in request.headers or request.url.path == "/metrics":
            return PlainTextResponse(f"{error}\n", HTTPStatus.UNAUTHORIZED, {"WWW-Authenticate": "Bearer"})
        path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        target = f"/sign-in?{urlencode({'next': path if request.method == 'GET' else '/overview'})}"
        if "hx-request" in request.headers:  # a part of a page: the whole page has to go
            return Response(status_code=HTTPStatus.OK, headers={"HX-Redirect": target})
        return RedirectResponse(target, HTTPStatus.SEE_OTHER)

    for kind, (status, title) in _PROBLEMS.items():

        def show(request: Request, error: Exception, status: HTTPStatus = status, title: str = title) -> Response:
            if not _reads_pages(request):
                return JSONResponse({"detail": str(error)}, status)
            return _problem(board, request, title, status, str(error))

        app.add_exception_handler(kind, show)

    @app.exception_handler(HTTPException)
    async def tell(request: Request, error: HTTPException) -> Response:
        if not _reads_pages(request):
            return await http_exception_handler(request, error)
        status = HTTPStatus(error.status_code)
        words = "There is no such page." if status is HTTPStatus.NOT_FOUND else f"{error.detail}."
        answer = await run_in_threadpool(_problem, board, request, status.phrase.capitalize(), status, words)
        answer.headers.update(error.headers or {})
        return answer

    @app.exception_handler(RequestValidationError)
    async def tell_of_values(request: Request, error: RequestValidationError) -> Response:
        if not _reads_pages(request):
            return await request_validation_exception_handler(request, error)
        wrong = error.errors()
        if any(one["loc"][0] == "path" for one in wrong):
            status, title, words = HTTPStatus.NOT_FOUND, "Not found", "There is no such page."
        else:
            status, title = HTTPStatus.UNPROCESSABLE_ENTITY, "That cannot be"
            words = " ".join(f"{one['loc'][-1]}: {one['msg']}." for one in wrong)
        return await run_in_threadpool(_problem, board, request, title, status, words)


def _reads_pages(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "")


def _problem(board: Board, request: Request, title: str, status: HTTPStatus, words: str) -> Response:
    return page(board, request, "error.html", None, title, status, words=words)

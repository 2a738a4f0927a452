"""Answers with a page."""

from functools import cache
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse

from bot.dashboard.board import Board
from bot.dashboard.roles import Role, Viewer

STATIC = Path(__file__).resolve().parent / "static"
PAGES = (
    ("Overview", "/overview"),
    ("Models", "/models"),
    ("Tasks", "/tasks"),
    ("Budgets", "/budgets"),
    ("Queue", "/queue"),
)


def page(
    board: Board,
    request: Request,
    template: str,
    viewer: Viewer | None,
    title: str,
    status: HTTPStatus = HTTPStatus.OK,
    **values: Any,
) -> HTMLResponse:
    """Render a page with what every page takes."""
    path = request.url.path
    here = next((at for _, at in PAGES if path == at or path.startswith(f"{at}/")), "")
    html = board.pages.get_template(template).render(
        title=title,
        viewer=viewer,
        pages=PAGES,
        here=here,
        version=version(),
        admin=Role.ADMIN,
        operator=Role.OPERATOR,
        web_url=board.settings.github_web_url.rstrip("/"),
        **values,
    )
    return HTMLResponse(html, status)


@cache
def version() -> str:
    """Return a word that changes with our own static files, so that a browser keeps no old one."""
    content = b"".join((STATIC / name).read_bytes() for name in ("dashboard.css", "dashboard.js"))
    return sha256(content).hexdigest()[:10]

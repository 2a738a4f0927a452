"""Small things that the API's routes share: a body, a page of a list, an answer."""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.responses import JSONResponse

from bot.demo.hub.hub import HubRefusal

_LARGEST_PAGE = 100


async def _json_body(request: Request) -> Any:
    content = await request.body()
    if not content:
        return {}
    try:
        return json.loads(content)
    except ValueError as error:
        raise HubRefusal(400, "Problems parsing JSON") from error


async def _object_body(request: Request) -> dict[str, Any]:
    body = await _json_body(request)
    if not isinstance(body, dict):
        raise HubRefusal(400, "Body should be a JSON object")
    return body


JsonBody = Annotated[Any, Depends(_json_body)]
ObjectBody = Annotated[dict[str, Any], Depends(_object_body)]


def window(items: Sequence[Any], query: Mapping[str, str], url: str) -> tuple[list[Any], dict[str, str]]:
    """Return one page of a list, and the `Link` header that leads to the next where there is one.

    https://docs.github.com/en/rest/using-the-rest-api/using-pagination-in-the-rest-api
    """
    size = min(_number(query.get("per_page"), 30), _LARGEST_PAGE)
    page = _number(query.get("page"), 1)
    shown = list(items[(page - 1) * size : page * size])
    if page * size >= len(items):
        return shown, {}
    more = "".join(f"&{name}={value}" for name, value in query.items() if name not in ("page", "per_page"))
    return shown, {"Link": f'<{url}?page={page + 1}&per_page={size}{more}>; rel="next"'}


def page(items: Sequence[Any], request: Request, base: str, wrap: str = "") -> JSONResponse:
    """Answer one page of a list; with `wrap` as an object with a count beside the list."""
    shown, headers = window(items, request.query_params, f"{base}{request.url.path}")
    body: Any = {"total_count": len(items), wrap: shown} if wrap else shown
    return JSONResponse(body, headers=headers)


def _number(text: str | None, otherwise: int) -> int:
    return max(int(text), 1) if text and text.isdigit() else otherwise

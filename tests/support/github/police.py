"""Holds every request to, and every answer of, a web application that plays GitHub against GitHub's description."""

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

from tests.support.github import openapi

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
_API = ("/app", "/installation/", "/rate_limit", "/repos/", "/users/")


class Police:
    """ASGI middleware; what it finds goes to `violations`."""

    def __init__(self, app: Callable[..., Awaitable[None]], violations: list[openapi.Violation]) -> None:
        self._app = app
        self._violations = violations

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(_API):
            await self._app(scope, receive, send)
            return
        asked, answered, status = bytearray(), bytearray(), 0

        async def listen() -> Message:
            message = await receive()
            asked.extend(message.get("body", b""))
            return message

        async def speak(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            answered.extend(message.get("body", b""))
            await send(message)

        await self._app(scope, listen, speak)
        method, path = scope["method"], scope["path"]
        query = dict(parse_qsl(scope["query_string"].decode()))
        self._violations += openapi.check_request(method, path, query, json.loads(asked) if asked else None)
        self._violations += openapi.check_response(method, path, status, json.loads(answered) if answered else None)

"""Renames a repository of the local GitHub, which then answers under the old name as GitHub does: by redirections.

https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api#follow-redirects
"""

import json
import re
from pathlib import Path
from typing import Any

from tests.support.whole_run import REPOSITORY, WholeRun


def rename(run: WholeRun, name: str) -> str:
    """Rename `acme/shop`, without a word to anybody, and return its new full name."""
    hub = run.hub
    state, repository = hub._hub.state, hub._repository(REPOSITORY)
    folder = Path(hub._folder.name) / repository.owner.login
    with state.lock:
        state.repositories.pop(REPOSITORY.lower())
        (folder / f"{repository.name}.git").rename(folder / f"{name}.git")
        (folder / f"{repository.name}.git").symlink_to(folder / f"{name}.git")  # git follows redirections
        repository.name = name
        object.__setattr__(repository.bare, "path", folder / f"{name}.git")
        state.repositories[repository.full_name.lower()] = repository
    run.wire.app = _Redirecting(run.wire.app, REPOSITORY, repository.full_name, repository.id, state.repositories)
    return repository.full_name


class _Redirecting:
    """An ASGI application before another one."""

    def __init__(self, app: Any, old: str, new: str, number: int, there: Any) -> None:
        self._app, self._old, self._new, self._number, self._there = app, old, new, number, there

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        path = str(scope["path"])
        by_name = re.match(rf"/repos/{self._old}(?=/|$)", path)
        if by_name and self._old not in self._there:
            query = f"?{scope['query_string'].decode()}" if scope["query_string"] else ""
            address = f"http://localhost/repositories/{self._number}{path[by_name.end() :]}{query}"
            status = 301 if scope["method"] == "GET" else 307
            body = json.dumps({"message": "Moved Permanently", "url": address}).encode()
            headers = [(b"location", address.encode()), (b"content-type", b"application/json")]
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": body})
            return
        scope = {**scope, "path": re.sub(rf"^/repositories/{self._number}(?=/|$)", f"/repos/{self._new}", path)}
        await self._app(scope, receive, send)

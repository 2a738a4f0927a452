"""Renames a repository of the local GitHub, or its default branch; under the old name it then answers as GitHub does.

https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api#follow-redirects
"""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.whole_run import REPOSITORY, WholeRun
from workers.forge_target import ForgeTarget


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


def rename_default_branch(run: WholeRun, name: str) -> None:
    """Rename the default branch. GitHub sends who asks for the old one to the new one; git finds it gone.

    https://docs.github.com/en/rest/branches/branches#rename-a-branch
    """
    bare = run.hub._repository("").bare
    old = bare.default_branch()
    subprocess.run(["git", "branch", "-m", old, name], cwd=bare.path, check=True)
    run.wire.app = _RedirectingBranch(run.wire.app, old, name, run.hub._repository("").id)


def meanwhile(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object]) -> None:
    """Let something happen once, after the work and before its answer is handed in."""
    publish, todo = ForgeTarget.publish, [happens]

    def later(*arguments: object) -> None:
        if todo:
            todo.pop()()
        publish(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(ForgeTarget, "publish", later)


class _RedirectingBranch:
    def __init__(self, app: Any, old: str, new: str, number: int) -> None:
        self._app, self._old, self._new, self._number = app, old, new, number

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if str(scope["path"]) == f"/repos/{REPOSITORY}/branches/{self._old}":
            await _redirect(send, 301, f"/repositories/{self._number}/branches/{self._new}")
        else:
            await self._app(scope, receive, send)


class _Redirecting:
    """An ASGI application before another one."""

    def __init__(self, app: Any, old: str, new: str, number: int, there: Any) -> None:
        self._app, self._old, self._new, self._number, self._there = app, old, new, number, there

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        path = str(scope["path"])
        by_name = re.match(rf"/repos/{self._old}(?=/|$)", path)
        if by_name and self._old not in self._there:
            query = f"?{scope['query_string'].decode()}" if scope["query_string"] else ""
            status = 301 if scope["method"] == "GET" else 307
            await _redirect(send, status, f"/repositories/{self._number}{path[by_name.end() :]}{query}")
            return
        scope = {**scope, "path": re.sub(rf"^/repositories/{self._number}(?=/|$)", f"/repos/{self._new}", path)}
        await self._app(scope, receive, send)


async def _redirect(send: Any, status: int, path: str) -> None:
    address = f"http://localhost{path}"
    body = json.dumps({"message": "Moved Permanently", "url": address}).encode()
    headers = [(b"location", address.encode()), (b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

"""Clone and push over HTTP, with an installation token as the password, and the addresses of logs."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from bot.demo.hub import pulls
from bot.demo.hub.actions import blob_answer
from bot.demo.hub.git_http import GitRequest, GitResponse, password_of, refusal, serve
from bot.demo.hub.hub import Hub


async def _content(request: Request) -> bytes:
    return await request.body()


Content = Annotated[bytes, Depends(_content)]


def routes(hub: Hub) -> APIRouter:
    router = APIRouter()

    @router.get("/_blobs/{secret}")
    def blob(request: Request, secret: str) -> Response:
        stores = [found.actions for found in hub.state.repositories.values()]
        status, content = blob_answer(stores, secret, request.headers.get("authorization", ""))
        return Response(content, status, media_type="text/plain")

    @router.get("/{owner}/{repo}/info/refs")
    def refs(request: Request, owner: str, repo: str) -> Response:
        return answer(request, f"{owner}/{repo}", "/info/refs", b"")

    @router.post("/{owner}/{repo}/git-upload-pack")
    def fetch(request: Request, owner: str, repo: str, content: Content) -> Response:
        return answer(request, f"{owner}/{repo}", "/git-upload-pack", content)

    @router.post("/{owner}/{repo}/git-receive-pack")
    def push(request: Request, owner: str, repo: str, content: Content) -> Response:
        return answer(request, f"{owner}/{repo}", "/git-receive-pack", content)

    def answer(request: Request, full_name: str, path: str, content: bytes) -> Response:
        asked = GitRequest(request.method, path, request.url.query, dict(request.headers), content)
        done = _serve(hub, full_name.removesuffix(".git"), asked)
        return Response(done.body, done.status, headers=dict(done.headers))

    return router


def _serve(hub: Hub, full_name: str, asked: GitRequest) -> GitResponse:
    repository = hub.state.repository(full_name)
    if repository is None:
        return refusal(404, "Repository not found.")
    token = hub.state.tokens.get(password_of(asked.headers.get("authorization", "")))
    if token is None or not token.allows("metadata", write=False):
        return refusal(401, "Authentication failed.")
    if not token.allows("contents", write=asked.writes, repository_id=repository.id):
        return refusal(403, f"Permission to {full_name} denied.")
    with hub.state.lock:
        before = repository.bare.branches()
        done = serve(repository.bare.path, asked, hub.state.bot.login)
        pulls.branches_moved(hub, repository, pulls.differences(before, repository.bare.branches()), hub.state.bot)
    return done

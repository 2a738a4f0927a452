"""Branches and files that are made over the API: on the bare repository, from which the stateful GitHub takes them.

https://docs.github.com/en/rest/repos/contents#create-or-update-file-contents
"""

import base64
from typing import TYPE_CHECKING, Any

from bot.demo.hub.git import Identity
from bot.demo.hub.hub import HubRefusal, invalid_because
from bot.demo.hub.shapes import commit_files_json, commit_json
from tests.support.github.mirror import Hosted
from tests.support.github.telling import Telling
from tests.support.github.wire import Request, Response, as_json

if TYPE_CHECKING:
    from tests.support.github.proxy import Proxy

_BOT = Identity("acrouter[bot]", "acrouter[bot]@users.noreply.localhost")


class ContentRoutes:
    def __init__(self, proxy: "Proxy", telling: Telling) -> None:
        self._proxy = proxy
        self._telling = telling

    def make_ref(self, request: Request, hosted: Hosted, _: str) -> Response:
        body = request.json() or {}
        branch, sha = str(body["ref"]).removeprefix("refs/heads/"), str(body["sha"])
        with self._proxy.lock:
            if branch in hosted.bare.branches():
                return _refused(invalid_because("Reference", "Reference already exists"))
            hosted.bare.set_branch(branch, sha)
            self._tell(hosted)
        url = f"{self._proxy.base_url}/repos/{hosted.full_name}/git"
        target = {"type": "commit", "sha": sha, "url": f"{url}/commits/{sha}"}
        made = {"ref": body["ref"], "node_id": "REF_1", "url": f"{url}/{body['ref']}", "object": target}
        return as_json(201, made)

    def commit(self, request: Request, hosted: Hosted, sha: str) -> Response | None:
        """The stateful GitHub knows no files of a commit."""
        known, base = hosted.bare.commit(sha), self._proxy.base_url
        files = commit_files_json(hosted.bare, known, hosted.full_name, base)
        return as_json(200, commit_json(known, hosted.full_name, base) | files)

    def put_file(self, request: Request, hosted: Hosted, path: str) -> Response:
        body: dict[str, Any] = request.json() or {}
        branch = body.get("branch") or hosted.bare.default_branch()
        with self._proxy.lock:
            there = hosted.bare.file(branch, path) is not None
            older = hosted.bare.blob_sha(branch, path) if there else None
            if older and not body.get("sha"):
                return _refused(HubRefusal(422, 'Invalid request.\n\n"sha" wasn\'t supplied.'))
            if older != body.get("sha"):
                return _refused(HubRefusal(409, f"{path} does not match {body['sha']}"))
            files = {path: base64.b64decode(body["content"])}
            sha = hosted.bare.commit_files(branch, files, body["message"], _BOT)
            self._tell(hosted)
        content = {"name": path.rpartition("/")[2], "path": path, "sha": hosted.bare.blob_sha(sha, path)}
        return as_json(200 if older else 201, {"content": content, "commit": {"sha": sha, "message": body["message"]}})

    def _tell(self, hosted: Hosted) -> None:
        self._telling.tell_moved(hosted, self._proxy.sync(hosted), None)


def _refused(refusal: HubRefusal) -> Response:
    return as_json(refusal.status, refusal.as_json())

"""The rules of pull requests that the stateful GitHub lacks; a merge is a merge in the bare repository."""

from typing import TYPE_CHECKING, Any

from bot.demo.hub.git import MergeConflictError
from bot.demo.hub.pulls import CLOSES, WEB
from bot.demo.hub.shapes import commit_json, diff_entry_json
from tests.support.github.mirror import Hosted, PullHead
from tests.support.github.telling import Telling
from tests.support.github.wire import Request, Response, as_json, error, page

if TYPE_CHECKING:
    from tests.support.github.proxy import Proxy

Json = Any


class PullRoutes:
    def __init__(self, proxy: "Proxy", telling: Telling) -> None:
        self._proxy = proxy
        self._telling = telling

    def create_pull(self, request: Request, hosted: Hosted, _: str) -> Response | None:
        body = request.json() or {}
        with self._proxy.lock:
            owner, _, ref = str(body.get("head", "")).rpartition(":")
            source = hosted if not owner else self._proxy.find(f"{owner}/{hosted.full_name.partition('/')[2]}")
            head_sha = source.bare.branches().get(ref) if source else None
            base_sha = hosted.bare.branches().get(str(body.get("base", "")))
            if source is None or head_sha is None or base_sha is None:
                field = "base" if base_sha is None else "head"
                return _invalid([{"resource": "PullRequest", "field": field, "code": "invalid"}])
            if any(p.open and (p.repository, p.ref) == (source.full_name, ref) for p in hosted.pulls.values()):
                return _invalid_pull(f"A pull request already exists for {source.full_name.partition('/')[0]}:{ref}.")
            if source is not hosted:
                hosted.bare.fetch_from(source.bare, head_sha)
            if not hosted.bare.commits_between(base_sha, head_sha):
                return _invalid_pull(f"No commits between {body['base']} and {ref}")
            hosted.copy_objects(self._proxy.emulate, head_sha)
            response = self._proxy.forward(request)
            if response.status != 201:
                return response
            number = response.json()["number"]
            hosted.pulls[number] = PullHead(source.full_name, ref, head_sha, body["base"])
            # Mended again now that its head is known, which forward() could not know yet.
            return as_json(201, self._telling.pull(hosted, number))

    def patch_pull(self, request: Request, hosted: Hosted, number: str) -> Response | None:
        response = self._proxy.forward(request)
        if response.status == 200 and int(number) in hosted.pulls:
            hosted.pulls[int(number)].open = response.json()["state"] == "open"
        return response

    def merge_pull(self, request: Request, hosted: Hosted, number_text: str) -> Response | None:
        number, body = int(number_text), request.json() or {}
        with self._proxy.lock:
            head = hosted.pulls.get(number)
            if head is None:
                return error(404, "Not Found")
            if not head.open:
                return error(405, "Pull Request is not mergeable")
            if body.get("sha") not in (None, head.sha):
                return error(409, "Head branch was modified. Review and try the merge again.")
            pull = self._telling.pull(hosted, number)
            title = body.get("commit_title") or f"Merge pull request #{number} from {pull['head']['label']}"
            message = f"{title}\n\n{body.get('commit_message') or pull['title']}"
            before = hosted.bare.branches()[head.base_ref]
            try:
                real = hosted.bare.merge(head.base_ref, head.sha, message, WEB)
            except MergeConflictError:
                return error(405, "Pull Request is not mergeable")
            hosted.copy_objects(self._proxy.emulate, real)
            merged = self._proxy.forward(Request("PUT", request.path, "", request.headers, b"{}"))
            if merged.status != 200:
                hosted.bare.set_branch(head.base_ref, before)
                return merged
            # It made a merge commit of its own; ours is the one that git has.
            self._proxy.aliases[merged.json()["sha"]] = real
            head.open = False
            hosted.force_ref(self._proxy.emulate, head.base_ref, real)
            hosted.mirrored[head.base_ref] = real
            self._telling.tell_moved(hosted, {head.base_ref: (before, real)}, pull["user"])
            self._close_fixed(hosted, pull)
            return as_json(200, {**merged.json(), "sha": real})

    def _close_fixed(self, hosted: Hosted, pull: Json) -> None:
        """Close the issues that the description names with a closing keyword, as GitHub does on the default branch."""
        if pull["base"]["ref"] != hosted.bare.default_branch():
            return
        for number in {int(text) for text in CLOSES.findall(pull["body"] or "")}:
            if number not in hosted.pulls and number != pull["number"]:
                self._proxy.emulate.call("PATCH", f"/repos/{hosted.full_name}/issues/{number}", {"state": "closed"})

    def pull_files(self, request: Request, hosted: Hosted, number: str) -> Response | None:
        head = hosted.pulls.get(int(number))
        if head is None:
            return error(404, "Not Found")
        pull = self._telling.pull(hosted, int(number))
        files = hosted.bare.changed_files(pull["base"]["sha"], head.sha)
        return page(
            request, [diff_entry_json(file, hosted.full_name, head.sha, self._proxy.base_url) for file in files]
        )

    def pull_commits(self, request: Request, hosted: Hosted, number: str) -> Response | None:
        head = hosted.pulls.get(int(number))
        if head is None:
            return error(404, "Not Found")
        pull = self._telling.pull(hosted, int(number))
        commits = map(hosted.bare.commit, hosted.bare.commits_between(pull["base"]["sha"], head.sha))
        return page(request, [commit_json(commit, hosted.full_name, self._proxy.base_url) for commit in commits])


def _invalid(errors: list[Json]) -> Response:
    return error(422, "Validation Failed", errors)


def _invalid_pull(message: str) -> Response:
    return _invalid([{"resource": "PullRequest", "code": "custom", "message": message}])

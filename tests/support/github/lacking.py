"""What the stateful GitHub lacks, answered here: Actions, reactions, the list of deliveries, and the rules of PRs.

Its stubs of Actions are passed over. Each answer of ours is held against GitHub's description.
"""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bot.demo.hub import payloads
from bot.demo.hub.actions import Run, job_json, run_json, suite_json
from bot.demo.hub.git import BareRepository, Commit, Identity, MergeConflictError
from bot.demo.hub.shapes import commit_json, diff_entry_json, integration_json, minimal_repository, user_json
from bot.demo.hub.state import User
from tests.support.github.mirror import Hosted, PullHead
from tests.support.github.wire import Request, Response, as_json, error

if TYPE_CHECKING:
    from tests.support.github.proxy import Proxy

Json = Any
Route = Callable[[Request, Hosted, str], Response | None]
_REPOSITORY = re.compile(r"/repos/([^/]+/[^/]+)(/.*)")
_CLOSES = re.compile(r"(?i)\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+#(\d+)")
_ACTIONS_APP = 15368


class Lacking:
    """The routes; `answer` gives None for what the stateful GitHub does itself."""

    def __init__(self, proxy: "Proxy") -> None:
        self._proxy = proxy
        self._routes: list[tuple[str, re.Pattern[str], Route]] = [
            (method, re.compile(pattern), route)
            for method, pattern, route in (
                ("POST", r"/pulls", self._create_pull),
                ("PATCH", r"/pulls/(\d+)", self._patch_pull),
                ("PUT", r"/pulls/(\d+)/merge", self._merge_pull),
                ("GET", r"/pulls/(\d+)/files", self._pull_files),
                ("GET", r"/pulls/(\d+)/commits", self._pull_commits),
                ("GET", r"/actions/runs", self._runs),
                ("GET", r"/actions/runs/(\d+)", self._run),
                ("GET", r"/actions/runs/(\d+)/jobs", self._jobs),
                ("GET", r"/actions/jobs/(\d+)", self._job),
                ("GET", r"/actions/jobs/(\d+)/logs", self._log),
                ("POST", r"/actions/runs/(\d+)/rerun-failed-jobs", self._rerun),
                ("GET", r"/check-suites/(\d+)", self._suite),
                ("POST", r"/issues/(?:comments/)?(\d+)/reactions", self._react),
            )
        ]
        self._reactions = 0

    def answer(self, request: Request) -> Response | None:
        if request.path.startswith("/app/hook/deliveries"):
            return self._deliveries(request)
        found = _REPOSITORY.fullmatch(request.plain_path)
        hosted = self._proxy.find(found[1]) if found else None
        if found is None or hosted is None:
            return None
        for method, pattern, route in self._routes:
            if method == request.method and (match := pattern.fullmatch(found[2])):
                return route(request, hosted, match[1] if match.groups() else "")
        return None

    # Pull requests.

    def _create_pull(self, request: Request, hosted: Hosted, _: str) -> Response | None:
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
            _fetch(hosted.bare, source.bare, head_sha)
            if not hosted.bare.commits_between(base_sha, head_sha):
                return _invalid_pull(f"No commits between {body['base']} and {ref}")
            hosted.copy_objects(self._proxy.emulate, head_sha)
            response = self._proxy.forward(request)
            if response.status != 201:
                return response
            number = response.json()["number"]
            hosted.pulls[number] = PullHead(source.full_name, ref, head_sha, body["base"])
            # Mended again now that its head is known, which forward() could not know yet.
            return as_json(201, self._pull(hosted, number))

    def _patch_pull(self, request: Request, hosted: Hosted, number: str) -> Response | None:
        response = self._proxy.forward(request)
        if response.status == 200 and int(number) in hosted.pulls:
            hosted.pulls[int(number)].open = response.json()["state"] == "open"
        return response

    def _merge_pull(self, request: Request, hosted: Hosted, number_text: str) -> Response | None:
        number, body = int(number_text), request.json() or {}
        with self._proxy.lock:
            head = hosted.pulls.get(number)
            if head is None:
                return error(404, "Not Found")
            if not head.open:
                return error(405, "Pull Request is not mergeable")
            if body.get("sha") not in (None, head.sha):
                return error(409, "Head branch was modified. Review and try the merge again.")
            pull = self._pull(hosted, number)
            title = body.get("commit_title") or f"Merge pull request #{number} from {pull['head']['label']}"
            message = f"{title}\n\n{body.get('commit_message') or pull['title']}"
            author = Identity("GitHub", "noreply@github.com")
            before = hosted.bare.branches()[head.base_ref]
            try:
                real = hosted.bare.merge(head.base_ref, head.sha, message, author)
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
            self.tell_moved(hosted, {head.base_ref: (before, real)}, pull["user"])
            self._close_fixed(hosted, pull)
            return as_json(200, {**merged.json(), "sha": real})

    def _close_fixed(self, hosted: Hosted, pull: Json) -> None:
        """Close the issues that the description names with a closing keyword, as GitHub does on the default branch."""
        if pull["base"]["ref"] != hosted.bare.default_branch():
            return
        for number in {int(text) for text in _CLOSES.findall(pull["body"] or "")}:
            if number not in hosted.pulls and number != pull["number"]:
                self._proxy.emulate.call("PATCH", f"/repos/{hosted.full_name}/issues/{number}", {"state": "closed"})

    def _pull(self, hosted: Hosted, number: int) -> Json:
        path = f"/repos/{hosted.full_name}/pulls/{number}"
        return self._proxy.forward(Request("GET", path, "", self._owner_headers(), b"")).json()

    def _pull_files(self, request: Request, hosted: Hosted, number: str) -> Response | None:
        head = hosted.pulls.get(int(number))
        if head is None:
            return error(404, "Not Found")
        pull = self._pull(hosted, int(number))
        files = hosted.bare.changed_files(pull["base"]["sha"], head.sha)
        return _page(
            request, [diff_entry_json(file, hosted.full_name, head.sha, self._proxy.base_url) for file in files]
        )

    def _pull_commits(self, request: Request, hosted: Hosted, number: str) -> Response | None:
        head = hosted.pulls.get(int(number))
        if head is None:
            return error(404, "Not Found")
        pull = self._pull(hosted, int(number))
        commits = map(hosted.bare.commit, hosted.bare.commits_between(pull["base"]["sha"], head.sha))
        return _page(request, [commit_json(commit, hosted.full_name, self._proxy.base_url) for commit in commits])

    # Actions.

    def run_json(self, hosted: Hosted, run: Run) -> Json:
        owner = self.simple_user(hosted.full_name.partition("/")[0])
        return run_json(run, self.minimal(hosted), self._commit(hosted, run), owner, self._proxy.base_url)

    def _runs(self, request: Request, hosted: Hosted, _: str) -> Response | None:
        runs = [run for run in hosted.actions.runs.values() if _wanted(run, request.query)]
        return as_json(200, {"total_count": len(runs), "workflow_runs": [self.run_json(hosted, r) for r in runs]})

    def _run(self, _: Request, hosted: Hosted, run_id: str) -> Response | None:
        run = hosted.actions.runs.get(int(run_id))
        return as_json(200, self.run_json(hosted, run)) if run else error(404, "Not Found")

    def _jobs(self, request: Request, hosted: Hosted, run_id: str) -> Response | None:
        run = hosted.actions.runs.get(int(run_id))
        if run is None:
            return error(404, "Not Found")
        jobs = [job_json(run, job, self.minimal(hosted), self._proxy.base_url) for job in run.jobs]
        return as_json(200, {"total_count": len(jobs), "jobs": jobs})

    def _job(self, _: Request, hosted: Hosted, job_id: str) -> Response | None:
        found = hosted.actions.job(int(job_id))
        if found is None:
            return error(404, "Not Found")
        return as_json(200, job_json(*found, self.minimal(hosted), self._proxy.base_url))

    def _log(self, request: Request, hosted: Hosted, job_id: str) -> Response | None:
        found = hosted.actions.job(int(job_id))
        if found is None:
            return error(404, "Not Found")
        # 127.0.0.1 and localhost are two hosts to a client, as GitHub and its blob store are.
        host = self._proxy.base_url.replace("localhost", "127.0.0.1")
        return Response(302, b"", {"Location": host + hosted.actions.blob_address(found[1])})

    def _rerun(self, _: Request, hosted: Hosted, run_id: str) -> Response | None:
        return as_json(201, {}) if int(run_id) in hosted.actions.runs else error(404, "Not Found")

    def _suite(self, _: Request, hosted: Hosted, suite_id: str) -> Response | None:
        for run in hosted.actions.runs.values():
            if run.suite_id == int(suite_id):
                commit = self._commit(hosted, run)
                return as_json(200, suite_json(run, self.minimal(hosted), commit, self.actions_app()))
        return None

    # The rest.

    def _react(self, request: Request, hosted: Hosted, _: str) -> Response | None:
        self._reactions += 1
        bot = user_json(User(1, "acrouter[bot]", "Bot"), self._proxy.base_url)
        made = {"id": self._reactions, "node_id": f"REA_{self._reactions}", "user": bot}
        return as_json(
            201, {**made, "content": (request.json() or {})["content"], "created_at": "2026-01-01T00:00:00Z"}
        )

    def _deliveries(self, request: Request) -> Response:
        allowed = self._proxy.forward(Request("GET", "/app", "", request.headers, b""))
        if allowed.status != 200:
            return allowed
        tail = request.path.removeprefix("/app/hook/deliveries").strip("/").split("/")
        newest_first = self._proxy.sender.deliveries[::-1]
        if not tail[0]:
            return _page(request, [delivery.as_json() for delivery in newest_first])
        chosen = [delivery for delivery in newest_first if str(delivery.id) == tail[0]]
        if not chosen:
            return error(404, "Not Found")
        if tail[1:] == ["attempts"]:
            self._proxy.sender.redeliver(chosen[0])
            return as_json(202, {})
        exchange = {
            "request": {"headers": {}, "payload": chosen[0].payload},
            "response": {"headers": {}, "payload": ""},
        }
        return as_json(200, {**chosen[0].as_json(), **exchange})

    # Webhooks.

    def complete(self, event: str, payload: Json) -> tuple[str, Json]:
        """Return a webhook with what the stateful GitHub leaves out."""
        if event == "pull_request":
            payload = {**payload, "number": payload["pull_request"]["number"]}
        issue = payload.get("issue") or {}
        if event == "issues" and "merged_at" in issue:
            # The label of a PR changed: GitHub tells of that as of a PR.
            payload = {**payload, "pull_request": issue, "number": issue["number"]}
            del payload["issue"]
            event = "pull_request"
        label = payload.get("label")
        if label and "id" not in label:
            known = [one for one in (issue or payload["pull_request"])["labels"] if one["name"] == label["name"]]
            payload = {**payload, "label": known[0] if known else label}
        return event, payload

    def tell_moved(self, hosted: Hosted, moved: dict[str, tuple[str | None, str | None]], sender: Json) -> None:
        """Send `push`, and `pull_request` synchronize, for branches that moved."""
        who = sender or user_json(User(1, "acrouter[bot]", "Bot"), self._proxy.base_url)
        for name, (before, after) in moved.items():
            shas = hosted.bare.commits_between(before, after)[-20:] if before and after else [after] if after else []
            commits = [hosted.bare.commit(sha) for sha in shas]
            common = self.common(hosted, who)
            self._proxy.sender.send("push", payloads.push(common, f"refs/heads/{name}", before, after, commits))
            for other in self._proxy.hosted.values():
                for number, head in list(other.pulls.items()):
                    if head.open and after and before and (head.repository, head.ref) == (hosted.full_name, name):
                        body = payloads.pull_request(
                            self.common(other, who),
                            "synchronize",
                            self._pull(other, number),
                            before=before,
                            after=after,
                        )
                        self._proxy.sender.send("pull_request", body)

    def common(self, hosted: Hosted, sender: Json) -> Json:
        path = f"/repos/{hosted.full_name}"
        repository = self._proxy.forward(Request("GET", path, "", self._owner_headers(), b"")).json()
        return payloads.envelope(self._proxy.emulate.installation_id, repository, sender)

    def simple_user(self, login: str) -> Json:
        return self._proxy.forward(Request("GET", f"/users/{login}", "", self._owner_headers(), b"")).json()

    def minimal(self, hosted: Hosted) -> Json:
        owner = user_json(User(1, hosted.full_name.partition("/")[0]), self._proxy.base_url)
        return minimal_repository(hosted.id, hosted.full_name, owner, self._proxy.base_url)

    def actions_app(self) -> Json:
        github = user_json(User(9919, "github"), self._proxy.base_url)
        return integration_json(
            _ACTIONS_APP, "github-actions", {"actions": "write"}, github, self._proxy.base_url, "2018-07-30T09:30:17Z"
        )

    def _commit(self, hosted: Hosted, run: Run) -> Commit:
        return hosted.bare.commit(run.head_sha)

    def _owner_headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {next(iter(self._proxy.emulate.tokens))}"}


def _fetch(target: BareRepository, source: BareRepository, sha: str) -> None:
    """Bring a fork's commit into the repository, as GitHub has it under `refs/pull`."""
    from bot.demo.hub.git import run

    if target is not source:
        run(["fetch", "--quiet", str(source.path), f"{sha}:refs/pull/{sha}/head"], repository=target.path)


def _invalid(errors: list[Json]) -> Response:
    return error(422, "Validation Failed", errors)


def _invalid_pull(message: str) -> Response:
    return _invalid([{"resource": "PullRequest", "code": "custom", "message": message}])


def _wanted(run: Run, query: dict[str, str]) -> bool:
    return (
        query.get("head_sha", run.head_sha) == run.head_sha and query.get("branch", run.head_branch) == run.head_branch
    )


def _page(request: Request, items: list[Json]) -> Response:
    size, number = int(request.query.get("per_page", 30)), int(request.query.get("page", 1))
    return as_json(200, items[(number - 1) * size : number * size])

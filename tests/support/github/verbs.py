"""The verbs that tests tell their stories in, on the stateful GitHub."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bot.demo.hub import payloads
from bot.demo.hub.actions import Conclusion
from bot.demo.hub.git import BareRepository, Identity
from bot.demo.hub.state import Permission
from bot.demo.hub.story import ReviewState
from tests.support.github.emulate import Emulate
from tests.support.github.mirror import Hosted
from tests.support.github.proxy import Proxy

Json = Any

OWNER = "acme"
_WORDS = {"admin": "admin", "write": "push", "read": "pull"}
_EVENTS = {"APPROVED": "APPROVE", "CHANGES_REQUESTED": "REQUEST_CHANGES", "COMMENTED": "COMMENT"}


class Verbs:
    """A `bot.demo.hub.story.Story`, and what only tests do; bare repositories go below `folder`."""

    def __init__(self, proxy: Proxy, emulate: Emulate, folder: Path) -> None:
        self.base_url = proxy.base_url
        self._proxy = proxy
        self._emulate = emulate
        self._folder = folder
        self._focus = ""

    def focus(self, full_name: str) -> None:
        """Let the verbs that name no repository mean this one; without it they mean the first that was created."""
        self._focus = self._hosted(full_name).full_name

    def create_repository(self, full_name: str, from_git: Path) -> None:
        owner, _, name = full_name.partition("/")
        bare = BareRepository.copy_of(from_git, self._folder / owner / f"{name}.git")
        made = self._emulate.call("POST", "/user/repos", {"name": name}, by=owner)
        hosted = Hosted(made["id"], full_name, bare)
        self._proxy.hosted[full_name.lower()] = hosted
        self._proxy.sync(hosted)
        self._emulate.call("PATCH", f"/repos/{full_name}", {"default_branch": bare.default_branch()}, by=owner)
        self.set_permission("maintainer", "write", repository=full_name)

    def fork(self, by: str, *, repository: str = "") -> str:
        """Fork a repository and return the fork's full name."""
        original = self._hosted(repository)
        made = self._emulate.call("POST", f"/repos/{original.full_name}/forks", {}, by=by)
        bare = BareRepository.copy_of(original.bare.path, self._folder / by / f"{made['name']}.git")
        hosted = Hosted(made["id"], made["full_name"], bare, mirrored=dict(original.mirrored))
        self._proxy.hosted[hosted.full_name.lower()] = hosted
        return hosted.full_name

    def make_team(self, organisation: str, team: str, people: Sequence[str]) -> None:
        self._emulate.call("POST", f"/orgs/{organisation}/teams", {"name": team})
        for login in people:
            self._emulate.call("PUT", f"/orgs/{organisation}/teams/{team}/memberships/{login}", {"role": "member"})

    def set_permission(self, login: str, permission: Permission, *, repository: str = "") -> None:
        hosted = self._hosted(repository)
        path = f"/repos/{hosted.full_name}/collaborators/{login}"
        if permission == "none":
            self._emulate.call("DELETE", path)
            hosted.permissions[login.lower()] = "none"
            return
        self._emulate.call("PUT", path, {"permission": _WORDS[permission]})
        hosted.permissions[login.lower()] = permission

    def open_issue(self, title: str, body: str = "", *, by: str = "maintainer", repository: str = "") -> int:
        made = self._do("POST", "/issues", {"title": title, "body": body}, by, repository)
        return int(made["number"])

    def close_issue(self, number: int, *, by: str = "maintainer", repository: str = "") -> None:
        self._do("PATCH", f"/issues/{number}", {"state": "closed"}, by, repository)

    def label(self, number: int, name: str, *, by: str = "maintainer", repository: str = "") -> None:
        self._do("POST", f"/issues/{number}/labels", {"labels": [name]}, by, repository)

    def unlabel(self, number: int, name: str, *, by: str = "maintainer", repository: str = "") -> None:
        self._do("DELETE", f"/issues/{number}/labels/{quote(name, safe='')}", None, by, repository)

    def comment(self, number: int, body: str, *, by: str = "maintainer", repository: str = "") -> int:
        return int(self._do("POST", f"/issues/{number}/comments", {"body": body}, by, repository)["id"])

    def edit_comment(self, comment_id: int, body: str, *, by: str = "maintainer", repository: str = "") -> None:
        self._do("PATCH", f"/issues/comments/{comment_id}", {"body": body}, by, repository)

    def push(
        self,
        branch: str,
        files: Mapping[str, str | bytes | None],
        *,
        message: str = "Change files",
        by: str = "maintainer",
        repository: str = "",
    ) -> str:
        hosted = self._hosted(repository)
        with self._proxy.lock:
            sha = hosted.bare.commit_files(branch, files, message, Identity(by, f"{by}@example.com"))
            self._tell(hosted, by)
        return sha

    def move_branch(self, branch: str, sha: str, *, by: str = "maintainer", repository: str = "") -> None:
        """Point a branch at a commit that is there, as a forced push does."""
        hosted = self._hosted(repository)
        with self._proxy.lock:
            hosted.bare.set_branch(branch, sha)
            self._tell(hosted, by)

    def delete_branch(self, branch: str, *, by: str = "maintainer", repository: str = "") -> None:
        hosted = self._hosted(repository)
        with self._proxy.lock:
            hosted.bare.delete_branch(branch)
            self._tell(hosted, by)

    def open_pull_request(
        self, title: str, *, head: str, base: str = "", body: str = "", by: str = "maintainer", repository: str = ""
    ) -> int:
        target = base or self._hosted(repository).bare.default_branch()
        asked = {"title": title, "head": head, "base": target, "body": body}
        return int(self._do("POST", "/pulls", asked, by, repository)["number"])

    def merge(self, number: int, *, by: str = "maintainer", repository: str = "") -> str:
        return str(self._do("PUT", f"/pulls/{number}/merge", {}, by, repository)["sha"])

    def close(self, number: int, *, by: str = "maintainer", repository: str = "") -> None:
        self._do("PATCH", f"/pulls/{number}", {"state": "closed"}, by, repository)

    def review(
        self, number: int, state: ReviewState, *, by: str = "maintainer", body: str = "", repository: str = ""
    ) -> None:
        asked = {"event": _EVENTS[state], "body": body or "See above."}
        self._do("POST", f"/pulls/{number}/reviews", asked, by, repository)

    def fail_ci(
        self,
        head_sha: str,
        branch: str | None,
        *,
        workflow: str = "ci",
        jobs: Sequence[tuple[str, str | bytes]] = (("test", "FAILED\n"),),
        event: str = "push",
        repository: str = "",
    ) -> int:
        return self._ci("failure", head_sha, branch, workflow=workflow, jobs=jobs, event=event, repository=repository)

    def pass_ci(self, head_sha: str, branch: str | None, *, workflow: str = "ci", repository: str = "") -> int:
        return self._ci("success", head_sha, branch, workflow=workflow, jobs=[("test", "ok\n")], repository=repository)

    # What the story looks at.

    def issue(self, number: int, *, repository: str = "") -> Json:
        return self._do("GET", f"/issues/{number}", None, "", repository)

    def comments(self, number: int, *, repository: str = "") -> list[Json]:
        found: list[Json] = self._do("GET", f"/issues/{number}/comments?per_page=100", None, "", repository)
        return found

    def labels(self, number: int, *, repository: str = "") -> set[str]:
        return {label["name"] for label in self._do("GET", f"/issues/{number}/labels", None, "", repository)}

    def pull_requests(self, *, repository: str = "") -> list[Json]:
        listed = self._do("GET", "/pulls?state=all&per_page=100", None, "", repository)
        numbers = sorted(pull["number"] for pull in listed)
        return [self._do("GET", f"/pulls/{number}", None, "", repository) for number in numbers]

    def check_runs(self, sha: str, *, repository: str = "") -> list[Json]:
        found: list[Json] = self._do("GET", f"/commits/{sha}/check-runs", None, "", repository)["check_runs"]
        return found

    def branches(self, *, repository: str = "") -> dict[str, str]:
        return self._hosted(repository).bare.branches()

    def bare(self, *, repository: str = "") -> BareRepository:
        """Return the repository itself, for a test that looks into its commits."""
        return self._hosted(repository).bare

    def _hosted(self, full_name: str) -> Hosted:
        name = full_name or self._focus
        found = self._proxy.find(name) if name else next(iter(self._proxy.hosted.values()), None)
        if found is None:
            raise LookupError(f"no repository {full_name!r} was created here")
        return found

    def _do(self, method: str, tail: str, body: Json, by: str, repository: str) -> Json:
        return self._proxy.perform(method, f"/repos/{self._hosted(repository).full_name}{tail}", body, by or OWNER)

    def _tell(self, hosted: Hosted, by: str) -> None:
        telling = self._proxy.telling
        telling.tell_moved(hosted, self._proxy.sync(hosted), telling.simple_user(by))

    def _ci(
        self,
        conclusion: Conclusion,
        head_sha: str,
        branch: str | None,
        *,
        workflow: str,
        jobs: Sequence[tuple[str, str | bytes]],
        repository: str,
        event: str = "push",
    ) -> int:
        hosted = self._hosted(repository)
        inside = [n for n, h in hosted.pulls.items() if h.open and h.repository == hosted.full_name and h.ref == branch]
        pulls = [payloads.pull_request_minimal(self._do("GET", f"/pulls/{n}", None, "", repository)) for n in inside]
        run = hosted.actions.add(
            workflow=workflow,
            head_sha=head_sha,
            head_branch=branch,
            conclusion=conclusion,
            jobs=jobs,
            pull_requests=pulls,
            event=event,
        )
        for name, _ in jobs:
            check = {"name": name, "head_sha": head_sha, "status": "completed", "conclusion": conclusion}
            self._do("POST", "/check-runs", check, OWNER, repository)
        self._proxy.telling.tell_run(hosted, run)
        return run.id

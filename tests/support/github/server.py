"""The GitHub that integration tests run against, and the verbs that they tell their stories in."""

import re
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from bot.demo.hub import payloads
from bot.demo.hub.actions import Conclusion, Run
from bot.demo.hub.git import BareRepository, Identity
from bot.demo.hub.state import Permission
from bot.demo.hub.story import ReviewState
from bot.demo.hub.webhooks import Delivery, WebhookSender
from tests.support.github.emulate import Emulate
from tests.support.github.faults import Action, Fault
from tests.support.github.lacking import Lacking
from tests.support.github.mirror import Hosted
from tests.support.github.proxy import Proxy
from tests.support.github.wire import Recorded, make_server
from tests.support.services import free_port

Json = Any

APP_ID = 77
APP_SLUG = "acrouter"
INSTALLATION_ID = 4242
OWNER = "acme"
PEOPLE = ("maintainer", "reader", "stranger", "contributor")
WEBHOOK_SECRET = "the App's webhook secret"
PERMISSIONS = {
    "metadata": "read",
    "contents": "write",
    "issues": "write",
    "pull_requests": "write",
    "checks": "write",
    "actions": "write",
}
_WORDS = {"admin": "admin", "write": "push", "read": "pull"}
_EVENTS = {"APPROVED": "APPROVE", "CHANGES_REQUESTED": "REQUEST_CHANGES", "COMMENTED": "COMMENT"}


def new_private_key() -> str:
    """Return a private key for an App, as GitHub gives it out (PEM, PKCS#1)."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    ).decode()


class GitHubServer:
    """A stateful GitHub for one test; `with GitHubServer(folder) as gh:` starts it, checks and stops it.

    It is the stateful GitHub that nobody here wrote, behind a server of ours that adds what that lacks. It is a
    `bot.demo.hub.story.Story`.

    Args:
        folder: where the bare repositories go.
        webhook_url: where webhooks go; may be set later as `gh.webhook_url`.
    """

    def __init__(self, folder: Path, webhook_url: str | None = None, *, people: Sequence[str] = PEOPLE) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.private_key_pem = new_private_key()
        self.app_id = APP_ID
        self.app_slug = APP_SLUG
        self.installation_id = INSTALLATION_ID
        self.webhook_secret = WEBHOOK_SECRET
        self.port = free_port()
        self.base_url = f"http://localhost:{self.port}"
        self._folder = folder
        self._sender = WebhookSender(webhook_url, WEBHOOK_SECRET)
        self._emulate = Emulate(
            folder,
            public_url=self.base_url,
            hook_url=f"http://127.0.0.1:{self.port}/_from-emulate",
            owner=OWNER,
            users=people,
            app_id=APP_ID,
            app_slug=APP_SLUG,
            private_key_pem=self.private_key_pem,
            installation_id=INSTALLATION_ID,
            permissions=PERMISSIONS,
        )
        self._proxy = Proxy(self._emulate, self._sender, self.base_url)
        self._lacking: Lacking = self._proxy.lacking
        self._server = make_server(self.port, self._proxy.answer)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> "GitHubServer":
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.stop()
        if kind is None:
            self.assert_no_violations()

    def start(self) -> None:
        self._thread.start()
        self._sender.start()
        self._emulate.start()

    def stop(self) -> None:
        self._proxy.faults.clear()
        self._emulate.stop()
        self._server.shutdown()
        self._server.server_close()
        self._sender.stop()

    # What the test looks at and sets.

    @property
    def webhook_url(self) -> str | None:
        return self._sender.url

    @webhook_url.setter
    def webhook_url(self, url: str | None) -> None:
        self._sender.url = url

    @property
    def requests(self) -> list[Recorded]:
        """Every request that was made from outside, in order of their answers."""
        return list(self._proxy.requests)

    @property
    def deliveries(self) -> list[Delivery]:
        """Every webhook that was sent or lost, in order."""
        return list(self._sender.deliveries)

    @property
    def tokens(self) -> list[str]:
        """Every installation token that was handed out, for tests that look for leaks."""
        return [*self._proxy.tokens]

    def count(self, method: str, path_regex: str) -> int:
        """Return how many requests of a method had a path that matches as a whole."""
        return sum(r.method == method and re.fullmatch(path_regex, r.path) is not None for r in self.requests)

    def on(self, method: str, path_regex: str, action: Action, *, times: int | None = 1) -> Fault:
        """Let the next requests of a method (`*`: any) whose path has a match meet a fault."""
        return self._proxy.faults.add(method, path_regex, action, times=times)

    def clear_faults(self) -> None:
        self._proxy.faults.clear()

    def assert_no_violations(self) -> None:
        """Fail where a request, or an answer of ours, is not as GitHub's description has it."""
        found = [str(violation) for violation in self._proxy.violations]
        assert not found, "GitHub's description does not allow:\n" + "\n".join(found)

    def expire_tokens(self) -> None:
        """Let every installation token that was handed out be dead."""
        self._proxy.expired |= self._proxy.tokens.keys()

    def lose_webhooks(self, count: int = 1) -> None:
        """Let the next webhooks never arrive; they stay in the list of deliveries."""
        self._sender.lose_next(count)

    def redeliver(self, delivery: Delivery) -> Delivery:
        """Send a webhook again, under the id that it had."""
        return self._sender.redeliver(delivery)

    def settle(self) -> None:
        """Wait until every webhook so far has been sent."""
        self._sender.settle()

    # The story's verbs.

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
        repository: str = "",
    ) -> int:
        return self._ci("failure", head_sha, branch, workflow, jobs, repository)

    def pass_ci(self, head_sha: str, branch: str | None, *, workflow: str = "ci", repository: str = "") -> int:
        return self._ci("success", head_sha, branch, workflow, [("test", "ok\n")], repository)

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
        found = self._proxy.find(full_name) if full_name else next(iter(self._proxy.hosted.values()), None)
        if found is None:
            raise LookupError(f"no repository {full_name!r} was created here")
        return found

    def _do(self, method: str, tail: str, body: Json, by: str, repository: str) -> Json:
        return self._proxy.perform(method, f"/repos/{self._hosted(repository).full_name}{tail}", body, by or OWNER)

    def _tell(self, hosted: Hosted, by: str) -> None:
        self._lacking.tell_moved(hosted, self._proxy.sync(hosted), self._lacking.simple_user(by))

    def _ci(
        self,
        conclusion: Conclusion,
        head_sha: str,
        branch: str | None,
        workflow: str,
        jobs: Sequence[tuple[str, str | bytes]],
        repository: str,
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
        )
        for name, _ in jobs:
            check = {"name": name, "head_sha": head_sha, "status": "completed", "conclusion": conclusion}
            self._do("POST", "/check-runs", check, OWNER, repository)
        self._send_ci(hosted, run)
        return run.id

    def _send_ci(self, hosted: Hosted, run: Run) -> None:
        common = self._lacking.common(hosted, self._lacking.simple_user(OWNER))
        minimal, commit = self._lacking.minimal(hosted), hosted.bare.commit(run.head_sha)
        suite = payloads.check_suite(common, run, minimal, commit, self._lacking.actions_app())
        self._sender.send("workflow_run", payloads.workflow_run(common, run, minimal, commit, self.base_url))
        self._sender.send("check_suite", suite)

"""What is told of what happened: the webhooks that the stateful GitHub lacks or sends with gaps."""

from typing import TYPE_CHECKING, Any

from bot.demo.hub import payloads
from bot.demo.hub.actions import Run
from bot.demo.hub.shapes import integration_json, minimal_repository, user_json
from bot.demo.hub.state import User
from tests.support.github.mirror import Hosted
from tests.support.github.wire import Request

if TYPE_CHECKING:
    from tests.support.github.proxy import Proxy

Json = Any
_ACTIONS_APP = 15368


class Telling:
    """Puts webhooks together and hands them to the sender."""

    def __init__(self, proxy: "Proxy") -> None:
        self._proxy = proxy

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
        if event == "pull_request_review":
            review = payload["review"]
            # The API writes a review's state in upper case, the webhook in lower case.
            payload = {**payload, "review": {**review, "state": review["state"].lower()}}
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
                            self.pull(other, number),
                            before=before,
                            after=after,
                        )
                        self._proxy.sender.send("pull_request", body)

    def common(self, hosted: Hosted, sender: Json) -> Json:
        path = f"/repos/{hosted.full_name}"
        repository = self._proxy.forward(Request("GET", path, "", self._owner_headers(), b"")).json()
        return payloads.envelope(self._proxy.emulate.installation_id, repository, sender)

    def simple_user(self, login: str) -> Json:
        """Return GitHub's `simple-user` of somebody whom the stateful GitHub knows."""
        found = self._proxy.forward(Request("GET", f"/users/{login}", "", self._owner_headers(), b"")).json()
        return user_json(User(found["id"], found["login"], found["type"]), self._proxy.base_url)

    def minimal(self, hosted: Hosted) -> Json:
        owner = self.simple_user(hosted.full_name.partition("/")[0])
        return minimal_repository(hosted.id, hosted.full_name, owner, self._proxy.base_url)

    def actions_app(self) -> Json:
        github = user_json(User(9919, "github"), self._proxy.base_url)
        return integration_json(
            _ACTIONS_APP,
            "github-actions",
            {"actions": "write"},
            owner=github,
            base=self._proxy.base_url,
            created_at="2018-07-30T09:30:17Z",
        )

    def _owner_headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {next(iter(self._proxy.emulate.tokens))}"}

    def tell_run(self, hosted: Hosted, run: Run) -> None:
        """Send `workflow_run` and `check_suite` completed, as GitHub sends both for one run."""
        common = self.common(hosted, self.simple_user(hosted.full_name.partition("/")[0]))
        minimal, commit = self.minimal(hosted), hosted.bare.commit(run.head_sha)
        body = payloads.workflow_run(common, run, minimal, commit, self._proxy.base_url)
        self._proxy.sender.send("workflow_run", body)
        self._proxy.sender.send("check_suite", payloads.check_suite(common, run, minimal, commit, self.actions_app()))

    def pull(self, hosted: Hosted, number: int) -> Json:
        """Return a pull request as the API has it."""
        path = f"/repos/{hosted.full_name}/pulls/{number}"
        return self._proxy.forward(Request("GET", path, "", self._owner_headers(), b"")).json()

"""The bodies of webhooks, put together from the API's own shapes.

https://docs.github.com/en/webhooks/webhook-events-and-payloads
"""

from collections.abc import Mapping, Sequence
from typing import Any

from bot.demo.hub.actions import Run, run_json, simple_commit, suite_json, workflow_json
from bot.demo.hub.git import Commit

Json = dict[str, Any]
ZERO_SHA = "0" * 40


def envelope(installation_id: int, repository: Json, sender: Json) -> Json:
    """Return what every webhook of a repository carries."""
    return {
        "installation": {"id": installation_id, "node_id": f"I_{installation_id}"},
        "repository": repository,
        "sender": sender,
    }


def push(common: Mapping[str, Any], ref: str, before: str | None, after: str | None, commits: Sequence[Commit]) -> Json:
    """Return the body of `push`; `before` None: the branch is new, `after` None: it is gone."""
    repository = common["repository"]
    listed = [_pushed_commit(commit, repository["html_url"]) for commit in commits]
    sender = common["sender"]
    return {
        **common,
        "ref": ref,
        "before": before or ZERO_SHA,
        "after": after or ZERO_SHA,
        "created": before is None,
        "deleted": after is None,
        "forced": False,
        "base_ref": None,
        "compare": f"{repository['html_url']}/compare/{(before or ZERO_SHA)[:12]}...{(after or ZERO_SHA)[:12]}",
        "commits": listed,
        "head_commit": listed[-1] if listed else None,
        "pusher": {"name": sender["login"], "email": f"{sender['login']}@users.noreply.github.com"},
    }


def workflow_run(common: Mapping[str, Any], run: Run, repository: Json, commit: Commit, base_url: str) -> Json:
    """Return the body of `workflow_run` completed; `repository` is a `minimal-repository`."""
    return {
        **common,
        "action": "completed",
        "workflow": workflow_json(run, repository, base_url),
        "workflow_run": run_json(run, repository, commit, common["sender"], base_url),
    }


def check_suite(common: Mapping[str, Any], run: Run, repository: Json, commit: Commit, app: Json) -> Json:
    """Return the body of `check_suite` completed; `app` is the App that ran the checks."""
    suite = suite_json(run, repository, commit, app)
    # The webhook has the suite without its repository, which stands beside it.
    suite.pop("repository")
    return {**common, "action": "completed", "check_suite": suite}


def pull_request(common: Mapping[str, Any], action: str, pull: Json, **more: Any) -> Json:
    """Return the body of `pull_request`."""
    return {**common, "action": action, "number": pull["number"], "pull_request": pull, **more}


def pull_request_minimal(pull: Json) -> Json:
    """Return GitHub's `pull-request-minimal` of a pull request, as check events list them."""

    def side(name: str) -> Json:
        repository = pull[name]["repo"]
        about = {"id": repository["id"], "url": repository["url"], "name": repository["name"]}
        return {"ref": pull[name]["ref"], "sha": pull[name]["sha"], "repo": about}

    return {
        "id": pull["id"],
        "number": pull["number"],
        "url": pull["url"],
        "head": side("head"),
        "base": side("base"),
    }


def _pushed_commit(commit: Commit, html_url: str) -> Json:
    return {
        **simple_commit(commit),
        "distinct": True,
        "url": f"{html_url}/commit/{commit.sha}",
        "added": [],
        "removed": [],
        "modified": [],
    }

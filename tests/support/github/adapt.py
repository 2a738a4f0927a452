"""Mends what the stateful GitHub answers where it differs from GitHub: heads that moved, permissions, marks of a PR."""

from collections.abc import Callable, Mapping
from typing import Any

from tests.support.github.mirror import Hosted

Json = Any
Find = Callable[[str], Hosted | None]

# https://docs.github.com/en/rest/collaborators/collaborators: "maintain is mapped to write, triage to read"
_LEGACY = {"push": "write", "maintain": "write", "pull": "read", "triage": "read"}


def mend(value: Json, find: Find, aliases: Mapping[str, str]) -> Json:
    """Return an answer or a webhook's body with every pull request, issue and SHA in it mended.

    `find` gives a repository by full name; `aliases` gives the real SHA for one that only the stateful GitHub has.
    """
    if isinstance(value, list):
        return [mend(item, find, aliases) for item in value]
    if isinstance(value, str):
        return aliases.get(value, value)
    if not isinstance(value, dict):
        return value
    mended = {key: mend(item, find, aliases) for key, item in value.items()}
    _fill(mended)
    if "merged_at" in mended and isinstance(mended.get("head"), dict):
        _mend_pull(mended, find)
    elif "repository_url" in mended and "number" in mended:
        _mend_issue(mended, find)
    return mended


def permission(answer: Json, hosted: Hosted, login: str) -> Json:
    """Return the answer about a collaborator in the words that GitHub uses."""
    told = hosted.permissions.get(login.lower(), answer["permission"])
    word = _LEGACY.get(told, told)
    return {**answer, "permission": word, "role_name": "write" if told == "push" else told}


_EVENTS = (
    "issues",
    "issue_comment",
    "pull_request",
    "pull_request_review",
    "push",
    "check_suite",
    "check_run",
    "workflow_run",
)
"""What the App is subscribed to. The stateful GitHub is asked for everything, and says so; GitHub names each."""


def _fill(value: dict[str, Json]) -> None:
    """Add fields that GitHub has by now and the stateful GitHub has not."""
    if "full_name" in value and "clone_url" in value:
        value.setdefault("custom_properties", {})
        value.setdefault("web_commit_signoff_required", False)
    elif "merged_at" in value:
        value.setdefault("active_lock_reason", None)
    elif value.get("events") == ["*"]:
        value["events"] = list(_EVENTS)
    elif "login" in value and "public_repos" not in value and value.get("name", "") is None:
        del value["name"]


def _mend_pull(pull: dict[str, Json], find: Find) -> None:
    hosted = find(pull["base"]["repo"]["full_name"])
    head = hosted.pulls.get(pull["number"]) if hosted else None
    if hosted is None or head is None:
        return
    pull["head"]["sha"] = head.sha
    origin = find(head.repository)
    if origin is not None and origin.pushed_at and pull["head"]["repo"]:
        pull["head"]["repo"]["pushed_at"] = origin.pushed_at
    base_sha = hosted.mirrored.get(head.base_ref)
    if head.open and base_sha:
        pull["base"]["sha"] = base_sha
    pull["statuses_url"] = f"{pull['base']['repo']['url']}/statuses/{head.sha}"
    if "changed_files" in pull:
        files = hosted.bare.changed_files(pull["base"]["sha"], head.sha)
        pull["changed_files"] = len(files)
        pull["additions"] = sum(file.additions for file in files)
        pull["deletions"] = sum(file.deletions for file in files)
        pull["commits"] = len(hosted.bare.commits_between(pull["base"]["sha"], head.sha))


def _mend_issue(issue: dict[str, Json], find: Find) -> None:
    api = issue["repository_url"]
    full_name = "/".join(api.rsplit("/", 2)[1:])
    hosted = find(full_name)
    if hosted is None or issue["number"] not in hosted.pulls:
        return
    html = f"{api.split('/repos/')[0]}/{full_name}/pull/{issue['number']}"
    issue["html_url"] = html
    issue["pull_request"] = {
        "url": f"{api}/pulls/{issue['number']}",
        "html_url": html,
        "diff_url": f"{html}.diff",
        "patch_url": f"{html}.patch",
        "merged_at": None,
    }

"""Branches, files and permissions of a repository."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from github import UnknownObjectException
from github.Repository import Repository

from bot.errors import Moved
from workers.errors import ForgeError
from workers.ports import BranchHead, FileChange, Permission

_PERMISSIONS: dict[str, Permission] = {
    "admin": "admin",
    "maintain": "maintain",
    "write": "write",
    "triage": "triage",
    "read": "read",
}
MOST_CHANGES = 300
"""Files that GitHub tells of a commit at once."""
_BROAD: dict[Permission, Permission] = {"maintain": "write", "triage": "read"}


def read_default_branch(repository: Repository) -> BranchHead:
    """Return the default branch with its newest commit.

    Raises:
        UnknownObjectException: the repository is gone or has no commit yet.
    """
    _, data = repository.requester.requestJsonAndCheck("GET", repository.url)
    must_be_of(repository, data)
    return _branch(repository, data["default_branch"])


def read_branch(repository: Repository, name: str) -> BranchHead | None:
    """Return a branch with its newest commit, under its new name where it was renamed, or None where there is none."""
    try:
        return _branch(repository, name)
    except UnknownObjectException:
        return None
    except Moved as moved:
        present = unquote(urlsplit(moved.address).path.partition("/branches/")[2])
        if present in ("", name):  # it is the repository that has another name
            raise
        return _branch(repository, present)


def read_file(repository: Repository, path: str, ref: str) -> str | None:
    """Return a file's text, or None where there is no regular file.

    Raises:
        ForgeError: it is larger than the megabyte that GitHub sends.
    """
    try:
        _, data = repository.requester.requestJsonAndCheck(
            "GET", f"{repository.url}/contents/{quote(path)}", parameters={"ref": ref} if ref else None
        )
    except UnknownObjectException:
        return None
    if not isinstance(data, dict) or data.get("type") != "file":
        return None
    if data.get("encoding") != "base64":
        raise ForgeError(f"{path} is too large to be read.")
    return base64.b64decode(data["content"]).decode("utf-8", "replace")


def read_commit_changes(repository: Repository, sha: str) -> Sequence[FileChange]:
    """Return what a commit does to files.

    https://docs.github.com/en/rest/commits/commits#get-a-commit
    """
    _, data = repository.requester.requestJsonAndCheck("GET", f"{repository.url}/commits/{quote(sha, safe='')}")
    return [as_change(file) for file in (data.get("files") or [])[:MOST_CHANGES]]


def read_changes_since(repository: Repository, base_ref: str, sha: str) -> Sequence[FileChange]:
    """Return what was done to files on the way to a commit since it left a branch.

    https://docs.github.com/en/rest/commits/commits#compare-two-commits
    """
    url = f"{repository.url}/compare/{quote(base_ref)}...{quote(sha)}"
    _, data = repository.requester.requestJsonAndCheck("GET", url)
    return [as_change(file) for file in (data.get("files") or [])[:MOST_CHANGES]]


def as_change(file: Mapping[str, Any]) -> FileChange:
    """Read GitHub's `diff-entry`."""
    path = file["filename"]
    return FileChange(path, file.get("previous_filename") or path, file.get("patch") or "")


def read_permission(repository: Repository, login: str) -> Permission:
    """Return what a person may do now.

    GitHub's `permission` reports `maintain` as write and `triage` as read; `role_name` is exact, but may be a role that
    the organisation made up.
    https://docs.github.com/en/rest/collaborators/collaborators#get-repository-permissions-for-a-user
    """
    url = f"{repository.url}/collaborators/{quote(login, safe='')}/permission"
    try:
        _, data = repository.requester.requestJsonAndCheck("GET", url)
    except UnknownObjectException:
        return "none"
    broad = _PERMISSIONS.get(data.get("permission", ""), "none")
    exact = _PERMISSIONS.get(data.get("role_name") or "", broad)
    # Where the two tell of different things, the lesser one counts.
    return exact if _BROAD.get(exact, exact) == broad else broad


def is_team_member(repository: Repository, organisation: str, team: str, login: str) -> bool:
    """Return whether a person is in a team; an invitation that is not accepted yet does not count.

    https://docs.github.com/en/rest/teams/members#get-team-membership-for-a-user
    """
    path = f"/orgs/{quote(organisation, safe='')}/teams/{quote(team, safe='')}/memberships/{quote(login, safe='')}"
    try:
        _, data = repository.requester.requestJsonAndCheck("GET", path)
    except UnknownObjectException:
        return False
    return bool(data.get("state") == "active")


def must_be_of(repository: Repository, answered: Mapping[str, Any]) -> None:
    """Make sure that it is the repository itself that GitHub tells of: another one may have its former name.

    Raises:
        Moved: it is another one.
    """
    if answered["id"] != repository.id:
        raise Moved("")


def _branch(repository: Repository, name: str) -> BranchHead:
    _, data = repository.requester.requestJsonAndCheck("GET", f"{repository.url}/branches/{quote(name)}")
    return BranchHead(data["name"], data["commit"]["sha"])

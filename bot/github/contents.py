"""Branches, files and permissions of a repository."""

import base64
from typing import Literal
from urllib.parse import quote

from github import UnknownObjectException
from github.Repository import Repository

from workers.errors import ForgeError
from workers.ports import BranchHead

_PERMISSIONS: dict[str, Literal["admin", "write", "read"]] = {"admin": "admin", "write": "write", "read": "read"}


def read_default_branch(repository: Repository) -> BranchHead:
    """Return the default branch with its newest commit.

    Raises:
        UnknownObjectException: the repository is gone or has no commit yet.
    """
    _, data = repository.requester.requestJsonAndCheck("GET", repository.url)
    return _branch(repository, data["default_branch"])


def read_branch(repository: Repository, name: str) -> BranchHead | None:
    """Return a branch with its newest commit, or None where there is none."""
    try:
        return _branch(repository, name)
    except UnknownObjectException:
        return None


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


def read_permission(repository: Repository, login: str) -> Literal["admin", "write", "read", "none"]:
    """Return what a person may do now. GitHub reports `maintain` as write and `triage` as read."""
    try:
        found = repository.get_collaborator_permission(login)
    except UnknownObjectException:
        return "none"
    return _PERMISSIONS.get(found, "none")


def _branch(repository: Repository, name: str) -> BranchHead:
    _, data = repository.requester.requestJsonAndCheck("GET", f"{repository.url}/branches/{quote(name)}")
    return BranchHead(data["name"], data["commit"]["sha"])

"""A PR that adds or replaces one file, made over the API: no working copy is needed for it."""

import base64
from urllib.parse import quote

from github.GithubException import GithubException
from github.Repository import Repository

from bot.github import pulls
from bot.github.contents import read_branch, read_default_branch, read_file
from store.scrub import scrub
from workers.ports import PullRequestInfo


def propose_file(
    repository: Repository, *, branch: str, path: str, text: str, title: str, body: str
) -> PullRequestInfo:
    """Open a PR from `branch` that puts `text` at `path`, or return the one that is open from it.

    Each step looks before it writes, so that it can be called again after any of them.

    Raises:
        UnknownObjectException: the repository is gone or has no commit yet.
    """
    base = read_default_branch(repository)
    text = scrub(text)
    if read_branch(repository, branch) is None:
        _make_branch(repository, branch, base.sha)
    if read_file(repository, path, branch) != text:
        _put(repository, branch, path, text, title)
    return pulls.create_pull(repository, head_ref=branch, base_ref=base.name, title=title, body=body, draft=False)


def _make_branch(repository: Repository, branch: str, sha: str) -> None:
    wanted = {"ref": f"refs/heads/{branch}", "sha": sha}
    try:
        repository.requester.requestJsonAndCheck("POST", f"{repository.url}/git/refs", input=wanted)
    except GithubException as error:
        # Another process was quicker, or GitHub did it although its answer was lost.
        if error.status != 422 or read_branch(repository, branch) is None:
            raise


def _put(repository: Repository, branch: str, path: str, text: str, message: str) -> None:
    """Write the file; its older version must be named, or GitHub refuses to replace it."""
    url = f"{repository.url}/contents/{quote(path)}"
    wanted = {"message": message, "content": base64.b64encode(text.encode()).decode(), "branch": branch}
    older = _blob(repository, url, branch)
    repository.requester.requestJsonAndCheck("PUT", url, input=wanted | ({"sha": older} if older else {}))


def _blob(repository: Repository, url: str, branch: str) -> str | None:
    try:
        _, data = repository.requester.requestJsonAndCheck("GET", url, parameters={"ref": branch})
    except GithubException as error:
        if error.status == 404:
            return None
        raise
    return str(data["sha"]) if isinstance(data, dict) else None

"""Pull requests: read, found by their head, opened once, edited."""

from collections import deque
from collections.abc import Collection, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from github.GithubException import GithubException
from github.PullRequestComment import PullRequestComment
from github.PullRequestReview import PullRequestReview
from github.Repository import Repository

from bot.github.contents import MOST_CHANGES, as_change, must_be_of
from bot.github.limits import fit, fit_title
from store.scrub import scrub
from templates import render
from workers.ports import FileChange, PullRequestInfo

_MOST_FILES = 100
_MOST_COMMENTS = 50
_MOST_READ = 300
_MOST_FAILING = 100
_MOST_LOOKED_AT = 1000
"""Reviews, and checks (GitHub tells of no more): ten requests at the most."""
_OWN_PEOPLE = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})
_FAILED = frozenset({"failure", "timed_out", "cancelled", "action_required", "startup_failure"})


def read_pull(repository: Repository, number: int) -> PullRequestInfo:
    """Return a PR as it is now."""
    _, data = repository.requester.requestJsonAndCheck("GET", f"{repository.url}/pulls/{number}")
    must_be_of(repository, data["base"]["repo"])
    return _info(data)


def find_pull(repository: Repository, head_ref: str) -> PullRequestInfo | None:
    """Return the open PR from a branch of the repository itself, or else the newest of the closed ones."""
    found = _from_branch(repository, head_ref, "open") or _from_branch(repository, head_ref, "closed")
    return found[0] if found else None


def create_pull(
    repository: Repository, *, head_ref: str, base_ref: str, title: str, body: str, draft: bool
) -> PullRequestInfo:
    """Open a PR, or return the one that is open from this branch already.

    Some plans have no drafts (https://github.com/OpenHands/OpenHands/issues/6560): an ordinary PR is opened there.
    """
    if already := _from_branch(repository, head_ref, "open"):
        return already[0]
    content = {
        "title": fit_title(scrub(title)),
        "body": fit(scrub(body)),
        "head": head_ref,
        "base": base_ref,
        "draft": draft,
    }
    try:
        return _post(repository, content)
    except GithubException as error:
        if error.status != 422:
            raise
        # Another process was quicker, or GitHub did it although its answer was lost.
        if already := _from_branch(repository, head_ref, "open"):
            return already[0]
        if draft and "draft" in f"{error.data}".lower():
            return _post(repository, content | {"draft": False})
        raise


def request_reviews(repository: Repository, number: int, people: Sequence[str], teams: Sequence[str]) -> None:
    """Ask for reviews; GitHub leaves those alone who are asked already.

    https://docs.github.com/en/rest/pulls/review-requests#request-reviewers-for-a-pull-request
    """
    wanted = {"reviewers": list(people), "team_reviewers": list(teams)}
    url = f"{repository.url}/pulls/{number}/requested_reviewers"
    repository.requester.requestJsonAndCheck("POST", url, input=wanted)


def read_changes(repository: Repository, number: int) -> Sequence[FileChange]:
    """Return what a PR does to files, as many of them as GitHub tells of a commit."""
    return [as_change(file.raw_data) for file in islice(repository.get_pull(number).get_files(), MOST_CHANGES)]


def merged_as(repository: Repository, base_ref: str, shas: Collection[str]) -> Sequence[PullRequestInfo]:
    """Return the PRs that were merged to a branch by one of these commits, of the hundred that changed last.

    GitHub's list of a commit's PRs (`/commits/SHA/pulls`) may lag behind a merge; a PR's own merge does not.
    """
    _, data = repository.requester.requestJsonAndCheck(
        "GET",
        f"{repository.url}/pulls",
        parameters={"state": "closed", "base": base_ref, "sort": "updated", "direction": "desc", "per_page": "100"},
    )
    return [info for info in map(_info, data) if info.merged and info.merge_sha in shas]


def read_discussion(repository: Repository, number: int, sha: str, asked_at: datetime) -> str:
    """Return what a PR changes, what its reviewers said and which of its checks fail, as text for a task.

    It tells of commit `sha`, and of what had been said at `asked_at` and was not edited since.
    """
    pull = repository.get_pull(number)
    files = list(islice(pull.get_files(), _MOST_FILES + 1))
    # The oldest come first, and each reply to a remark on a line is a review of its own.
    said = (review for review in islice(pull.get_reviews(), _MOST_LOOKED_AT) if _stood(review, asked_at))
    reviews = deque(said, maxlen=_MOST_COMMENTS)
    newest_first = islice(pull.get_review_comments(sort="created", direction="desc"), _MOST_READ)
    comments = list(islice((one for one in newest_first if _was_said(one, asked_at)), _MOST_COMMENTS))
    now = read_pull(repository, number)
    if now.head_sha != sha:  # what was pushed since has names of files, which are words too
        files = repository.compare(now.base_ref, sha).files[: _MOST_FILES + 1]
    runs = islice(repository.get_commit(sha).get_check_runs(filter="latest"), _MOST_LOOKED_AT)
    failing = islice((run for run in runs if run.conclusion in _FAILED), _MOST_FAILING)
    return render(
        "pulls/discussion.md.j2",
        files=[(f.filename, f.status, f.additions, f.deletions) for f in files[:_MOST_FILES]],
        more_files=len(files) > _MOST_FILES,
        reviews=[(_login(r.user), r.state, r.body) for r in reviews],
        comments=[(_login(c.user), c.path, c.diff_hunk, c.body) for c in reversed(comments)],
        failing_checks=[
            (run.name, run.conclusion, run.output.title or "", run.output.summary or "") for run in failing
        ],
    )


def _stood(review: PullRequestReview, asked_at: datetime) -> bool:
    """Whether a review's words are those of that moment. GitHub tells of no later edit of them, so that only the
    repository's own people, who may ask for work or are let near it, are believed not to have made one."""
    said = bool((review.body or "").strip()) and review.submitted_at is not None and review.submitted_at <= asked_at
    return said and review.raw_data.get("author_association") in _OWN_PEOPLE


def _was_said(comment: PullRequestComment, asked_at: datetime) -> bool:
    return max(comment.created_at, comment.updated_at or comment.created_at) <= asked_at


def _from_branch(repository: Repository, head_ref: str, state: str) -> list[PullRequestInfo]:
    owner = repository.full_name.split("/", 1)[0]
    _, data = repository.requester.requestJsonAndCheck(
        "GET",
        f"{repository.url}/pulls",
        parameters={
            "state": state,
            "head": f"{owner}:{head_ref}",
            "sort": "created",
            "direction": "desc",
            "per_page": "100",
        },
    )
    # An owner may have a fork of its own repository: the same `head` names a branch of each.
    found = [_info(item) for item in data]
    return [info for info in found if info.head_ref == head_ref and not info.is_fork]


def _post(repository: Repository, content: dict[str, Any]) -> PullRequestInfo:
    _, data = repository.requester.requestJsonAndCheck("POST", f"{repository.url}/pulls", input=content)
    return _info(data)


def _info(data: dict[str, Any]) -> PullRequestInfo:
    head = data["head"]
    origin = head.get("repo") or {}
    merged = bool(data.get("merged") or data.get("merged_at"))
    return PullRequestInfo(
        number=data["number"],
        title=data["title"],
        body=data.get("body") or "",
        state="closed" if data["state"] == "closed" else "open",
        merged=merged,
        head_ref=head["ref"],
        head_sha=head["sha"],
        head_repository=origin.get("full_name", ""),
        base_repository=data["base"]["repo"]["full_name"],
        base_ref=data["base"]["ref"],
        url=data["html_url"],
        merge_sha=(data.get("merge_commit_sha") or "") if merged else "",
        author=(data.get("user") or {}).get("login", ""),
        pushed_at=_moment(origin.get("pushed_at")),
    )


def _moment(said: str | None) -> datetime | None:
    return datetime.fromisoformat(said) if said else None


def _login(user: object) -> str:
    return getattr(user, "login", None) or "ghost"

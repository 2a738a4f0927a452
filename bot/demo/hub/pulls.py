"""What can be done to a pull request and to branches; a merge is a merge in the repository."""

import re
from collections.abc import Mapping
from typing import Any

from bot.demo.hub import issues, payloads
from bot.demo.hub.git import Identity, MergeConflictError
from bot.demo.hub.hub import Hub, HubRefusal, invalid, invalid_because, not_found, text_of
from bot.demo.hub.issue_shapes import pull_json, review_json
from bot.demo.hub.state import Issue, Pull, Repository, Review, User, now
from bot.demo.hub.story import ReviewState

# https://docs.github.com/en/issues/tracking-your-work-with-issues/using-issues/linking-a-pull-request-to-an-issue
CLOSES = re.compile(r"(?i)\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+#(\d+)")
WEB = Identity("GitHub", "noreply@github.com")

Moved = Mapping[str, tuple[str | None, str | None]]


def find(repository: Repository, number: int) -> tuple[Issue, Pull]:
    """Return a pull request.

    Raises:
        HubRefusal: there is none (404).
    """
    issue = issues.find(repository, number)
    if issue.pull is None:
        raise not_found()
    return issue, issue.pull


def create(hub: Hub, repository: Repository, body: Mapping[str, Any], author: User) -> Issue:
    """Open a pull request from a branch of the repository itself.

    Raises:
        HubRefusal: 422 where a branch is not there, nothing changed, or one is open already.
    """
    title, base_ref = text_of(body, "title", "PullRequest"), text_of(body, "base", "PullRequest")
    owner, _, head_ref = text_of(body, "head", "PullRequest").rpartition(":")
    with hub.state.lock:
        branches = repository.bare.branches()
        if head_ref not in branches or owner not in ("", repository.owner.login):
            raise invalid("PullRequest", "head")
        if base_ref not in branches:
            raise invalid("PullRequest", "base")
        if any(
            issue.state == "open" and issue.pull and issue.pull.head_ref == head_ref for issue in repository.pulls()
        ):
            raise invalid_because(
                "PullRequest", f"A pull request already exists for {repository.owner.login}:{head_ref}."
            )
        head_sha, base_sha = branches[head_ref], branches[base_ref]
        if not repository.bare.commits_between(base_sha, head_sha):
            raise invalid_because("PullRequest", f"No commits between {base_ref} and {head_ref}")
        pull = Pull(head_ref, head_sha, base_ref, base_sha, draft=body.get("draft") is True)
        return issues.create(hub, repository, title, str(body.get("body") or ""), author, pull=pull)


def merge(hub: Hub, repository: Repository, number: int, body: Mapping[str, Any], by: User) -> str:
    """Merge a pull request and return the merge commit; issues that it names with a closing keyword are closed.

    Raises:
        HubRefusal: 405 where it cannot be merged, 409 where the head is not the one that was meant.
    """
    with hub.state.lock:
        issue, pull = find(repository, number)
        if issue.state != "open" or pull.draft:
            raise HubRefusal(405, "Pull Request is not mergeable")
        if body.get("sha") not in (None, pull.head_sha):
            raise HubRefusal(409, "Head branch was modified. Review and try the merge again.")
        label = f"{repository.owner.login}/{pull.head_ref}"
        title = body.get("commit_title") or f"Merge pull request #{number} from {label}"
        before = repository.bare.branches()[pull.base_ref]
        try:
            merged = repository.bare.merge(pull.base_ref, pull.head_sha, f"{title}\n\n{issue.title}", WEB)
        except MergeConflictError as error:
            raise HubRefusal(405, "Pull Request is not mergeable") from error
        pull.merged_at, pull.merged_by, pull.merge_sha = now(), by, merged
        branches_moved(hub, repository, {pull.base_ref: (before, merged)}, by)
        issues.edit(hub, repository, issue, {"state": "closed"}, by)
        if pull.base_ref == repository.bare.default_branch():
            for named in {int(text) for text in CLOSES.findall(issue.body)}:
                fixed = repository.issues.get(named)
                if fixed and not fixed.pull:
                    issues.edit(hub, repository, fixed, {"state": "closed"}, by)
    return merged


def review(hub: Hub, repository: Repository, number: int, by: User, *, state: ReviewState, body: str) -> Review:
    with hub.state.lock:
        issue, pull = find(repository, number)
        made = Review(hub.state.next_id(), by, state, body, pull.head_sha)
        pull.reviews.append(made)
        about = review_json(made, issue, repository, hub.base_url)
        # The webhook writes the state in lower case, the API in upper case.
        about["state"] = about["state"].lower()
        pull_request = pull_json(issue, repository, hub.base_url)
        hub.tell("pull_request_review", repository, by, action="submitted", review=about, pull_request=pull_request)
    return made


def branches_moved(hub: Hub, repository: Repository, moved: Moved, by: User) -> None:
    """Tell of branches that moved (before and after by name), and let open pull requests follow."""
    bare = repository.bare
    for name, (before, after) in moved.items():
        shas = bare.commits_between(before, after)[-20:] if before and after else [after] if after else []
        common = hub.common(repository, by)
        body = payloads.push(common, f"refs/heads/{name}", before, after, [bare.commit(sha) for sha in shas])
        hub.sender.send("push", body)
        for issue in repository.pulls():
            if issue.pull and issue.state == "open" and after and issue.pull.head_ref == name:
                issue.pull.head_sha = after
                issues.tell(hub, repository, issue, "synchronize", by, before=before, after=after)


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> Moved:
    """Return the branches that differ between two looks at a repository."""
    names = before.keys() | after.keys()
    return {name: (before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)}

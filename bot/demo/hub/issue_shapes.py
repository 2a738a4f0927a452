"""The JSON that GitHub's API gives for an issue, a pull request, their comments and a check run."""

from typing import Any

from bot.demo.hub.shapes import app_json, label_json, minimal_repository, repository_json, user_json
from bot.demo.hub.state import CheckRun, Comment, Issue, Repository, Review, State, User

Json = dict[str, Any]


def issue_json(issue: Issue, repository: Repository, base: str) -> Json:
    """Return GitHub's `issue`; a pull request's carries the mark `pull_request`."""
    api = f"{base}/repos/{repository.full_name}"
    url = f"{api}/issues/{issue.number}"
    body: Json = {
        "id": issue.id,
        "node_id": f"I_{issue.id}",
        "number": issue.number,
        "url": url,
        "repository_url": api,
        "labels_url": f"{url}/labels{{/name}}",
        "comments_url": f"{url}/comments",
        "events_url": f"{url}/events",
        "html_url": html_url(issue, repository, base),
        "title": issue.title,
        "body": issue.body,
        "user": user_json(issue.author, base),
        "labels": [label_json(label, repository.full_name, base) for label in issue.labels],
        "state": issue.state,
        "state_reason": "completed" if issue.state == "closed" else None,
        "locked": False,
        "active_lock_reason": None,
        "assignee": None,
        "assignees": [],
        "milestone": None,
        "comments": len(issue.comments),
        "created_at": issue.created_at,
        "updated_at": issue.updated_at,
        "closed_at": issue.closed_at,
        "author_association": association(issue.author, repository),
        "performed_via_github_app": None,
        "reactions": no_reactions(url),
    }
    if issue.pull:
        html = body["html_url"]
        body["pull_request"] = {
            "url": f"{api}/pulls/{issue.number}",
            "html_url": html,
            "diff_url": f"{html}.diff",
            "patch_url": f"{html}.patch",
            "merged_at": issue.pull.merged_at,
        }
    return body


def pull_json(issue: Issue, repository: Repository, base: str) -> Json:
    """Return GitHub's `pull-request`."""
    pull = issue.pull
    if pull is None:
        raise ValueError(f"#{issue.number} is no pull request")
    api = f"{base}/repos/{repository.full_name}"
    url = f"{api}/pulls/{issue.number}"
    html = html_url(issue, repository, base)
    links = {
        "comments_url": f"{api}/issues/{issue.number}/comments",
        "commits_url": f"{url}/commits",
        "issue_url": f"{api}/issues/{issue.number}",
        "review_comment_url": f"{api}/pulls/comments{{/number}}",
        "review_comments_url": f"{url}/comments",
        "statuses_url": f"{api}/statuses/{pull.head_sha}",
    }
    files = repository.bare.changed_files(pull.base_sha, pull.head_sha)
    about = repository_json(repository, base)

    def side(ref: str, sha: str) -> Json:
        owner = repository.owner
        return {"label": f"{owner.login}:{ref}", "ref": ref, "sha": sha, "repo": about, "user": user_json(owner, base)}

    return {
        "id": issue.id,
        "node_id": f"PR_{issue.id}",
        "number": issue.number,
        "url": url,
        "html_url": html,
        "diff_url": f"{html}.diff",
        "patch_url": f"{html}.patch",
        **links,
        "_links": {
            "self": {"href": url},
            "html": {"href": html},
            **{name.removesuffix("_url"): {"href": link} for name, link in links.items()},
        },
        "title": issue.title,
        "body": issue.body,
        "user": user_json(issue.author, base),
        "labels": [label_json(label, repository.full_name, base) for label in issue.labels],
        "state": issue.state,
        "locked": False,
        "active_lock_reason": None,
        "draft": pull.draft,
        "head": side(pull.head_ref, pull.head_sha),
        "base": side(pull.base_ref, pull.base_sha),
        "assignee": None,
        "assignees": [],
        "requested_reviewers": [],
        "requested_teams": [],
        "milestone": None,
        "auto_merge": None,
        "author_association": association(issue.author, repository),
        "created_at": issue.created_at,
        "updated_at": issue.updated_at,
        "closed_at": issue.closed_at,
        "merged_at": pull.merged_at,
        "merge_commit_sha": pull.merge_sha,
        "merged": pull.merged_at is not None,
        "merged_by": user_json(pull.merged_by, base) if pull.merged_by else None,
        "mergeable": issue.state == "open" or None,
        "mergeable_state": "clean" if issue.state == "open" else "unknown",
        "rebaseable": None,
        "maintainer_can_modify": False,
        "comments": len(issue.comments),
        "review_comments": 0,
        "commits": len(repository.bare.commits_between(pull.base_sha, pull.head_sha)),
        "changed_files": len(files),
        "additions": sum(file.additions for file in files),
        "deletions": sum(file.deletions for file in files),
    }


def comment_json(comment: Comment, issue: Issue, repository: Repository, base: str) -> Json:
    """Return GitHub's `issue-comment`."""
    api = f"{base}/repos/{repository.full_name}"
    return {
        "id": comment.id,
        "node_id": f"IC_{comment.id}",
        "url": f"{api}/issues/comments/{comment.id}",
        "html_url": f"{html_url(issue, repository, base)}#issuecomment-{comment.id}",
        "issue_url": f"{api}/issues/{issue.number}",
        "body": comment.body,
        "user": user_json(comment.author, base),
        "created_at": comment.created_at,
        "updated_at": comment.updated_at,
        "author_association": association(comment.author, repository),
        "performed_via_github_app": None,
        "reactions": no_reactions(f"{api}/issues/comments/{comment.id}"),
    }


def review_json(review: Review, issue: Issue, repository: Repository, base: str) -> Json:
    """Return GitHub's `pull-request-review`."""
    url = f"{base}/repos/{repository.full_name}/pulls/{issue.number}"
    html = f"{html_url(issue, repository, base)}#pullrequestreview-{review.id}"
    return {
        "id": review.id,
        "node_id": f"PRR_{review.id}",
        "user": user_json(review.author, base),
        "body": review.body,
        "state": review.state,
        "commit_id": review.commit_sha,
        "submitted_at": review.submitted_at,
        "html_url": html,
        "pull_request_url": url,
        "_links": {"html": {"href": html}, "pull_request": {"href": url}},
        "author_association": association(review.author, repository),
    }


def check_run_json(run: CheckRun, repository: Repository, state: State, base: str) -> Json:
    """Return GitHub's `check-run`."""
    url = f"{base}/repos/{repository.full_name}/check-runs/{run.id}"
    output = {name: run.output.get(name) for name in ("title", "summary", "text")}
    annotations = run.output.get("annotations") or []
    return {
        "id": run.id,
        "node_id": f"CR_{run.id}",
        "name": run.name,
        "head_sha": run.head_sha,
        "external_id": run.external_id,
        "url": url,
        "html_url": f"{base}/{repository.full_name}/runs/{run.id}",
        "details_url": run.details_url,
        "status": run.status,
        "conclusion": run.conclusion,
        "started_at": run.started_at,
        "completed_at": run.completed_at,
        "output": {**output, "annotations_count": len(annotations), "annotations_url": f"{url}/annotations"},
        # One suite for each commit, as GitHub keeps one for each App and commit.
        "check_suite": {"id": int(run.head_sha[:12], 16)},
        "app": app_json(state, base, user_json(state.bot, base)),
        "pull_requests": [],
    }


def minimal_json(repository: Repository, base: str) -> Json:
    """Return GitHub's `minimal-repository`."""
    return minimal_repository(repository.id, repository.full_name, user_json(repository.owner, base), base)


def html_url(issue: Issue, repository: Repository, base: str) -> str:
    """Return the address of the page that a person looks at."""
    return f"{base}/{repository.full_name}/{'pull' if issue.pull else 'issues'}/{issue.number}"


def no_reactions(url: str) -> Json:
    """Return GitHub's `reaction-rollup`: nobody counts reactions here."""
    kinds = ("+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes")
    return {"url": f"{url}/reactions", "total_count": 0, **dict.fromkeys(kinds, 0)}


def association(user: User, repository: Repository) -> str:
    if user == repository.owner:
        return "OWNER"
    return "COLLABORATOR" if user.login.lower() in repository.collaborators else "NONE"

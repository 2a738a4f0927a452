"""The JSON that GitHub's API gives for a user, a repository and a commit, as its description has them."""

from collections.abc import Mapping
from typing import Any

from bot.demo.hub.git import BareRepository, ChangedFile, Commit
from bot.demo.hub.state import Label, Repository, State, User

Json = dict[str, Any]

EVENTS = (
    "issues",
    "issue_comment",
    "pull_request",
    "pull_request_review",
    "check_suite",
    "check_run",
    "workflow_run",
    "push",
)

_USER_LINKS = {
    "followers_url": "/followers",
    "following_url": "/following{/other_user}",
    "gists_url": "/gists{/gist_id}",
    "starred_url": "/starred{/owner}{/repo}",
    "subscriptions_url": "/subscriptions",
    "organizations_url": "/orgs",
    "repos_url": "/repos",
    "events_url": "/events{/privacy}",
    "received_events_url": "/received_events",
}

_REPOSITORY_LINKS = {
    "archive_url": "/{archive_format}{/ref}",
    "assignees_url": "/assignees{/user}",
    "blobs_url": "/git/blobs{/sha}",
    "branches_url": "/branches{/branch}",
    "collaborators_url": "/collaborators{/collaborator}",
    "comments_url": "/comments{/number}",
    "commits_url": "/commits{/sha}",
    "compare_url": "/compare/{base}...{head}",
    "contents_url": "/contents/{+path}",
    "contributors_url": "/contributors",
    "deployments_url": "/deployments",
    "downloads_url": "/downloads",
    "events_url": "/events",
    "forks_url": "/forks",
    "git_commits_url": "/git/commits{/sha}",
    "git_refs_url": "/git/refs{/sha}",
    "git_tags_url": "/git/tags{/sha}",
    "hooks_url": "/hooks",
    "issue_comment_url": "/issues/comments{/number}",
    "issue_events_url": "/issues/events{/number}",
    "issues_url": "/issues{/number}",
    "keys_url": "/keys{/key_id}",
    "labels_url": "/labels{/name}",
    "languages_url": "/languages",
    "merges_url": "/merges",
    "milestones_url": "/milestones{/number}",
    "notifications_url": "/notifications{?since,all,participating}",
    "pulls_url": "/pulls{/number}",
    "releases_url": "/releases{/id}",
    "stargazers_url": "/stargazers",
    "statuses_url": "/statuses/{sha}",
    "subscribers_url": "/subscribers",
    "subscription_url": "/subscription",
    "tags_url": "/tags",
    "teams_url": "/teams",
    "trees_url": "/git/trees{/sha}",
}


def user_json(user: User, base: str) -> Json:
    """Return GitHub's `simple-user`."""
    url = f"{base}/users/{user.login}"
    return {
        "login": user.login,
        "id": user.id,
        "node_id": f"U_{user.id}",
        "avatar_url": f"{base}/avatars/{user.id}",
        "gravatar_id": "",
        "url": url,
        "html_url": f"{base}/{user.login}",
        **{name: url + tail for name, tail in _USER_LINKS.items()},
        "type": user.kind,
        "site_admin": False,
    }


def public_user_json(user: User, base: str, created_at: str) -> Json:
    """Return GitHub's `public-user`."""
    nothing_told = dict.fromkeys(("name", "company", "location", "email", "hireable", "bio"))
    numbers = dict.fromkeys(("public_repos", "public_gists", "followers", "following"), 0)
    times = {"created_at": created_at, "updated_at": created_at}
    return {**user_json(user, base), "blog": "", **nothing_told, **numbers, **times}


def minimal_repository(repository_id: int, full_name: str, owner: Json, base: str) -> Json:
    """Return GitHub's `minimal-repository`; `owner` is a `simple-user`."""
    url = f"{base}/repos/{full_name}"
    return {
        "id": repository_id,
        "node_id": f"R_{repository_id}",
        "name": full_name.partition("/")[2],
        "full_name": full_name,
        "private": False,
        "owner": owner,
        "html_url": f"{base}/{full_name}",
        "description": None,
        "fork": False,
        "url": url,
        **{name: url + tail for name, tail in _REPOSITORY_LINKS.items()},
    }


def repository_json(repository: Repository, base: str) -> Json:
    """Return GitHub's `full-repository`."""
    open_issues = sum(issue.state == "open" for issue in repository.issues.values())
    html = f"{base}/{repository.full_name}"
    return {
        **minimal_repository(repository.id, repository.full_name, user_json(repository.owner, base), base),
        "clone_url": f"{html}.git",
        "git_url": f"{html}.git",
        "ssh_url": f"{html}.git",
        "svn_url": html,
        "mirror_url": None,
        "homepage": None,
        "language": None,
        "license": None,
        "default_branch": repository.bare.default_branch(),
        "visibility": "public",
        "archived": False,
        "disabled": False,
        "has_issues": True,
        "has_projects": False,
        "has_wiki": False,
        "has_pages": False,
        "has_downloads": False,
        "has_discussions": False,
        "has_pull_requests": True,
        "is_template": False,
        "allow_forking": True,
        "web_commit_signoff_required": False,
        "topics": [],
        "custom_properties": {},
        **dict.fromkeys(("forks", "forks_count", "stargazers_count", "watchers", "watchers_count"), 0),
        **dict.fromkeys(("network_count", "subscribers_count", "size"), 0),
        "open_issues": open_issues,
        "open_issues_count": open_issues,
        "created_at": repository.created_at,
        "updated_at": repository.created_at,
        "pushed_at": repository.created_at,
    }


def label_json(label: Label, full_name: str, base: str) -> Json:
    return {
        "id": label.id,
        "node_id": f"LA_{label.id}",
        "url": f"{base}/repos/{full_name}/labels/{label.name}",
        "name": label.name,
        "description": label.description or None,
        "color": label.color,
        "default": False,
    }


def commit_json(commit: Commit, full_name: str, base: str) -> Json:
    """Return GitHub's `commit`. Its people are not matched to users."""
    api = f"{base}/repos/{full_name}"
    html = f"{base}/{full_name}/commit"
    unverified = {"verified": False, "reason": "unsigned", "signature": None, "payload": None, "verified_at": None}
    return {
        "sha": commit.sha,
        "node_id": f"C_{commit.sha}",
        "url": f"{api}/commits/{commit.sha}",
        "html_url": f"{html}/{commit.sha}",
        "comments_url": f"{api}/commits/{commit.sha}/comments",
        "commit": {
            "author": {"name": commit.author.name, "email": commit.author.email, "date": commit.author_date},
            "committer": {
                "name": commit.committer.name,
                "email": commit.committer.email,
                "date": commit.committer_date,
            },
            "message": commit.message.removesuffix("\n"),
            "tree": {"sha": commit.tree, "url": f"{api}/git/trees/{commit.tree}"},
            "url": f"{api}/git/commits/{commit.sha}",
            "comment_count": 0,
            "verification": unverified,
        },
        "author": None,
        "committer": None,
        "parents": [{"sha": sha, "url": f"{api}/commits/{sha}", "html_url": f"{html}/{sha}"} for sha in commit.parents],
    }


def diff_entry_json(file: ChangedFile, full_name: str, head_sha: str, base: str) -> Json:
    """Return GitHub's `diff-entry`; like GitHub's it has no patch where the file is binary."""
    html = f"{base}/{full_name}"
    entry = {
        "sha": file.blob_sha,
        "filename": file.path,
        "status": file.status,
        "additions": file.additions,
        "deletions": file.deletions,
        "changes": file.additions + file.deletions,
        "blob_url": f"{html}/blob/{head_sha}/{file.path}",
        "raw_url": f"{html}/raw/{head_sha}/{file.path}",
        "contents_url": f"{base}/repos/{full_name}/contents/{file.path}?ref={head_sha}",
    }
    return {**entry, "patch": file.patch} if file.patch else entry


def commit_files_json(bare: BareRepository, commit: Commit, full_name: str, base: str) -> Json:
    """Return what GitHub adds to a commit that is asked for alone: what it does, beside its first parent."""
    changed = bare.changed_files(commit.parents[0], commit.sha) if commit.parents else []
    additions, deletions = sum(file.additions for file in changed), sum(file.deletions for file in changed)
    stats = {"additions": additions, "deletions": deletions, "total": additions + deletions}
    return {"stats": stats, "files": [diff_entry_json(file, full_name, commit.sha, base) for file in changed]}


def app_json(state: State, base: str, owner: Json) -> Json:
    """Return GitHub's `integration`."""
    return integration_json(
        state.app_id, state.slug, state.permissions, owner=owner, base=base, created_at=state.created_at
    )


def integration_json(
    app_id: int, slug: str, permissions: Mapping[str, str], *, owner: Json, base: str, created_at: str
) -> Json:
    return {
        "id": app_id,
        "slug": slug,
        "node_id": f"A_{app_id}",
        "owner": owner,
        "name": slug,
        "description": None,
        "external_url": base,
        "html_url": f"{base}/apps/{slug}",
        "created_at": created_at,
        "updated_at": created_at,
        "permissions": dict(permissions),
        "events": list(EVENTS),
    }

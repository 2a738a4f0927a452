"""The API's part for a repository: itself, files, branches, refs, commits and what a person may do."""

import base64
from pathlib import PurePosixPath
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from bot.demo.hub import pulls
from bot.demo.hub.access import Access
from bot.demo.hub.git import HubGitError
from bot.demo.hub.hub import Hub, HubRefusal, invalid_because, not_found, text_of
from bot.demo.hub.issue_shapes import pull_json
from bot.demo.hub.requests import ObjectBody, page
from bot.demo.hub.shapes import commit_files_json, commit_json, diff_entry_json, repository_json, user_json
from bot.demo.hub.state import Repository

Json = dict[str, Any]
_REPO = "/repos/{owner}/{repo}"


def routes(hub: Hub, access: Access) -> APIRouter:
    router, base = APIRouter(), hub.base_url

    @router.get(_REPO)
    def repository(request: Request) -> Json:
        return repository_json(access.repository(request, "metadata"), base)

    @router.get(_REPO + "/collaborators/{login}/permission")
    def permission(request: Request, login: str) -> Json:
        found = access.repository(request, "metadata")
        user = hub.state.users.get(login.lower())
        if user is None:
            raise not_found()
        word = "admin" if user == found.owner else found.collaborators.get(login.lower(), "read")
        rights = {"admin": word == "admin", "maintain": False, "push": word in ("admin", "write")}
        rights |= {"triage": rights["push"], "pull": word != "none"}
        about = {**user_json(user, base), "permissions": rights, "role_name": word}
        return {"permission": word, "role_name": word, "user": about}

    @router.get(_REPO + "/contents/{path:path}")
    def contents(request: Request, path: str) -> Json:
        found = access.repository(request, "contents")
        ref = request.query_params.get("ref") or found.bare.default_branch()
        data = found.bare.file(ref, path)
        if data is None:
            raise not_found()
        api, html = f"{base}/repos/{found.full_name}", f"{base}/{found.full_name}/blob/{ref}/{path}"
        url, blob = f"{api}/contents/{path}?ref={ref}", found.bare.blob_sha(ref, path)
        git_url = f"{api}/git/blobs/{blob}"
        return {
            "type": "file",
            "encoding": "base64",
            "size": len(data),
            "name": PurePosixPath(path).name,
            "path": path,
            "content": base64.encodebytes(data).decode(),
            "sha": blob,
            "url": url,
            "git_url": git_url,
            "html_url": html,
            "download_url": None,
            "_links": {"self": url, "git": git_url, "html": html},
        }

    _branch_routes(router, hub, access)
    _ref_routes(router, hub, access)
    _commit_routes(router, hub, access)
    return router


def _branch_routes(router: APIRouter, hub: Hub, access: Access) -> None:
    base = hub.base_url

    @router.get(_REPO + "/branches")
    def branches(request: Request) -> Response:
        found = access.repository(request, "contents")
        api = f"{base}/repos/{found.full_name}"
        listed = [
            {"name": name, "commit": {"sha": sha, "url": f"{api}/commits/{sha}"}, "protected": False}
            for name, sha in found.bare.branches().items()
        ]
        return page(listed, request, base)

    @router.get(_REPO + "/branches/{branch:path}")
    def branch(request: Request, branch: str) -> Json:
        found = access.repository(request, "contents")
        sha = found.bare.branches().get(branch)
        if sha is None:
            raise HubRefusal(404, "Branch not found")
        url = f"{base}/repos/{found.full_name}/branches/{branch}"
        checks = {"enforcement_level": "off", "contexts": [], "checks": []}
        return {
            "name": branch,
            "commit": commit_json(found.bare.commit(sha), found.full_name, base),
            "_links": {"self": url, "html": f"{base}/{found.full_name}/tree/{branch}"},
            "protected": False,
            "protection": {"enabled": False, "required_status_checks": checks},
            "protection_url": f"{url}/protection",
        }


def _ref_routes(router: APIRouter, hub: Hub, access: Access) -> None:
    base = hub.base_url

    def ref_json(repository: Repository, name: str, sha: str) -> Json:
        api = f"{base}/repos/{repository.full_name}/git"
        target = {"type": "commit", "sha": sha, "url": f"{api}/commits/{sha}"}
        ref = f"refs/heads/{name}"
        return {"ref": ref, "node_id": f"REF_{name}", "url": f"{api}/{ref}", "object": target}

    @router.get(_REPO + "/git/ref/heads/{name:path}")
    def one_ref(request: Request, name: str) -> Json:
        found = access.repository(request, "contents")
        sha = found.bare.branches().get(name)
        if sha is None:
            raise not_found()
        return ref_json(found, name, sha)

    @router.get(_REPO + "/git/matching-refs/heads/{prefix:path}")
    def matching_refs(request: Request, prefix: str) -> Response:
        found = access.repository(request, "contents")
        matching = {name: sha for name, sha in found.bare.branches().items() if name.startswith(prefix)}
        return JSONResponse([ref_json(found, name, sha) for name, sha in matching.items()])

    @router.post(_REPO + "/git/refs")
    def create_ref(request: Request, body: ObjectBody) -> Response:
        found = access.repository(request, "contents", write=True)
        ref, sha = text_of(body, "ref", "Reference"), text_of(body, "sha", "Reference")
        name = ref.removeprefix("refs/heads/")
        with hub.state.lock:
            if name in found.bare.branches():
                raise invalid_because("Reference", "Reference already exists")
            if name == ref or found.bare.resolve(sha) != sha:
                raise invalid_because("Reference", "Object does not exist")
            move(found, name, sha)
        return JSONResponse(ref_json(found, name, sha), 201)

    @router.delete(_REPO + "/git/refs/heads/{name:path}")
    def delete_ref(request: Request, name: str) -> Response:
        found = access.repository(request, "contents", write=True)
        with hub.state.lock:
            before = found.bare.branches()
            if name not in before:
                raise invalid_because("Reference", "Reference does not exist")
            if name == found.bare.default_branch():
                raise invalid_because("Reference", "Cannot delete the default branch")
            found.bare.delete_branch(name)
            pulls.branches_moved(hub, found, {name: (before[name], None)}, hub.state.bot)
        return Response(status_code=204)

    def move(found: Repository, name: str, sha: str) -> None:
        before = found.bare.branches().get(name)
        try:
            found.bare.set_branch(name, sha)
        except HubGitError as error:
            raise invalid_because("Reference", "Reference name is not valid") from error
        pulls.branches_moved(hub, found, {name: (before, sha)}, hub.state.bot)


def _commit_routes(router: APIRouter, hub: Hub, access: Access) -> None:
    base = hub.base_url

    @router.get(_REPO + "/commits/{ref}")
    def commit(request: Request, ref: str) -> Json:
        found = access.repository(request, "contents")
        known = found.commit(ref)
        if known is None:
            raise HubRefusal(422, f"No commit found for SHA: {ref}")
        return commit_json(known, found.full_name, base) | commit_files_json(found.bare, known, found.full_name, base)

    @router.get(_REPO + "/commits/{sha}/pulls")
    def commit_pulls(request: Request, sha: str) -> Response:
        found = access.repository(request, "pull_requests", "contents")
        holding = [
            issue for issue in found.pulls() if issue.pull and sha in (issue.pull.head_sha, issue.pull.merge_sha)
        ]
        return page([pull_json(issue, found, base) for issue in holding], request, base)

    @router.get(_REPO + "/compare/{basehead:path}")
    def compare(request: Request, basehead: str) -> Json:
        found = access.repository(request, "contents")
        base_ref, _, head_ref = basehead.partition("...")
        one, other = found.commit(base_ref), found.commit(head_ref)
        shared = found.bare.merge_base(one.sha, other.sha) if one and other else None
        if one is None or other is None or shared is None:
            raise not_found()
        ahead = found.bare.commits_between(one.sha, other.sha)
        behind = found.bare.commits_between(other.sha, one.sha)
        status = {
            (True, True): "diverged",
            (True, False): "ahead",
            (False, True): "behind",
            (False, False): "identical",
        }
        html = f"{base}/{found.full_name}/compare/{basehead}"
        files = found.bare.changed_files(one.sha, other.sha)
        return {
            "url": f"{base}/repos/{found.full_name}/compare/{basehead}",
            "html_url": html,
            "permalink_url": html,
            "diff_url": f"{html}.diff",
            "patch_url": f"{html}.patch",
            "base_commit": commit_json(one, found.full_name, base),
            "merge_base_commit": commit_json(found.bare.commit(shared), found.full_name, base),
            "status": status[bool(ahead), bool(behind)],
            "ahead_by": len(ahead),
            "behind_by": len(behind),
            "total_commits": len(ahead),
            "commits": [commit_json(found.bare.commit(sha), found.full_name, base) for sha in ahead],
            "files": [diff_entry_json(file, found.full_name, other.sha, base) for file in files],
        }

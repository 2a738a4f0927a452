"""The API's part for pull requests, check runs and Actions."""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from bot.demo.hub import checks, issues, pulls
from bot.demo.hub.access import Access
from bot.demo.hub.actions import Run, job_json, run_json, suite_json
from bot.demo.hub.hub import Hub, not_found
from bot.demo.hub.issue_shapes import check_run_json, minimal_json, pull_json, review_json
from bot.demo.hub.requests import ObjectBody, page
from bot.demo.hub.shapes import commit_json, diff_entry_json, user_json
from bot.demo.hub.state import Repository

Json = dict[str, Any]
_REPO = "/repos/{owner}/{repo}"


def routes(hub: Hub, access: Access) -> APIRouter:
    router, base, bot = APIRouter(), hub.base_url, hub.state.bot

    @router.get(_REPO + "/pulls")
    def listed(request: Request) -> Response:
        found = access.repository(request, "pull_requests")
        query = request.query_params
        wanted, head = query.get("state", "open"), query.get("head", "")
        chosen = [
            issue
            for issue in reversed(found.pulls())
            if issue.pull
            and wanted in ("all", issue.state)
            and head in ("", f"{found.owner.login}:{issue.pull.head_ref}")
            and query.get("base", issue.pull.base_ref) == issue.pull.base_ref
        ]
        if query.get("direction") == "asc":
            chosen.reverse()
        return page([pull_json(issue, found, base) for issue in chosen], request, base)

    @router.post(_REPO + "/pulls")
    def create(request: Request, body: ObjectBody) -> Response:
        found = access.repository(request, "pull_requests", write=True)
        return JSONResponse(pull_json(pulls.create(hub, found, body, bot), found, base), 201)

    @router.get(_REPO + "/pulls/{number}")
    def one(request: Request, number: int) -> Json:
        found = access.repository(request, "pull_requests")
        return pull_json(pulls.find(found, number)[0], found, base)

    @router.patch(_REPO + "/pulls/{number}")
    def edit(request: Request, number: int, body: ObjectBody) -> Json:
        found = access.repository(request, "pull_requests", write=True)
        issue, _ = pulls.find(found, number)
        issues.edit(hub, found, issue, body, bot)
        return pull_json(issue, found, base)

    @router.put(_REPO + "/pulls/{number}/merge")
    def merge(request: Request, number: int, body: ObjectBody) -> Json:
        found = access.repository(request, "contents", write=True)
        sha = pulls.merge(hub, found, number, body, bot)
        return {"sha": sha, "merged": True, "message": "Pull Request successfully merged"}

    @router.get(_REPO + "/pulls/{number}/files")
    def files(request: Request, number: int) -> Response:
        found = access.repository(request, "pull_requests")
        _, pull = pulls.find(found, number)
        changed = found.bare.changed_files(pull.base_sha, pull.head_sha)
        return page([diff_entry_json(file, found.full_name, pull.head_sha, base) for file in changed], request, base)

    @router.get(_REPO + "/pulls/{number}/commits")
    def commits(request: Request, number: int) -> Response:
        found = access.repository(request, "pull_requests")
        _, pull = pulls.find(found, number)
        shas = found.bare.commits_between(pull.base_sha, pull.head_sha)
        return page([commit_json(found.bare.commit(sha), found.full_name, base) for sha in shas], request, base)

    @router.get(_REPO + "/pulls/{number}/comments")
    def review_comments(request: Request, number: int) -> Response:
        found = access.repository(request, "pull_requests")
        pulls.find(found, number)
        # Nobody comments on single lines here.
        return page([], request, base)

    @router.get(_REPO + "/pulls/{number}/reviews")
    def reviews(request: Request, number: int) -> Response:
        found = access.repository(request, "pull_requests")
        issue, pull = pulls.find(found, number)
        return page([review_json(review, issue, found, base) for review in pull.reviews], request, base)

    _check_routes(router, hub, access)
    _actions_routes(router, hub, access)
    return router


def _check_routes(router: APIRouter, hub: Hub, access: Access) -> None:
    base, state = hub.base_url, hub.state

    @router.post(_REPO + "/check-runs")
    def create(request: Request, body: ObjectBody) -> Response:
        found = access.repository(request, "checks", write=True)
        run = checks.create(hub, found, body)
        return JSONResponse(check_run_json(run, found, state, base), 201)

    @router.get(_REPO + "/check-runs/{run_id}")
    def one(request: Request, run_id: int) -> Json:
        found = access.repository(request, "checks")
        return check_run_json(checks.find(found, run_id), found, state, base)

    @router.patch(_REPO + "/check-runs/{run_id}")
    def edit(request: Request, run_id: int, body: ObjectBody) -> Json:
        found = access.repository(request, "checks", write=True)
        return check_run_json(checks.edit(hub, found, run_id, body), found, state, base)

    @router.get(_REPO + "/commits/{ref:path}/check-runs")
    def of_commit(request: Request, ref: str) -> Response:
        found = access.repository(request, "checks")
        sha, name = found.bare.resolve(ref), request.query_params.get("check_name")
        runs = [run for run in found.check_runs.values() if run.head_sha == sha and name in (None, run.name)]
        shapes = [check_run_json(run, found, state, base) for run in reversed(runs)]
        return page(shapes, request, base, wrap="check_runs")


def _actions_routes(router: APIRouter, hub: Hub, access: Access) -> None:
    base = hub.base_url

    def find_run(found: Repository, run_id: int) -> Run:
        if run_id not in found.actions.runs:
            raise not_found()
        return found.actions.runs[run_id]

    def shape(found: Repository, run: Run) -> Json:
        owner = user_json(found.owner, base)
        return run_json(run, minimal_json(found, base), found.bare.commit(run.head_sha), owner, base)

    @router.get(_REPO + "/actions/runs")
    def runs(request: Request) -> Response:
        found = access.repository(request, "actions")
        query = request.query_params
        chosen = [
            run
            for run in reversed(found.actions.runs.values())
            if query.get("head_sha", run.head_sha) == run.head_sha
            and query.get("branch", run.head_branch) == run.head_branch
        ]
        return page([shape(found, run) for run in chosen], request, base, wrap="workflow_runs")

    @router.get(_REPO + "/actions/runs/{run_id}")
    def run(request: Request, run_id: int) -> Json:
        found = access.repository(request, "actions")
        return shape(found, find_run(found, run_id))

    @router.post(_REPO + "/actions/runs/{run_id}/rerun-failed-jobs")
    def run_again(request: Request, run_id: int) -> Response:
        checks.run_again(hub, access.repository(request, "actions", write=True), run_id)
        return JSONResponse({}, 201)

    @router.get(_REPO + "/actions/runs/{run_id}/jobs")
    def jobs(request: Request, run_id: int) -> Response:
        found = access.repository(request, "actions")
        chosen = find_run(found, run_id)
        shapes = [job_json(chosen, job, minimal_json(found, base), base) for job in chosen.jobs]
        return page(shapes, request, base, wrap="jobs")

    @router.get(_REPO + "/actions/jobs/{job_id}")
    def job(request: Request, job_id: int) -> Json:
        found = access.repository(request, "actions")
        known = found.actions.job(job_id)
        if known is None:
            raise not_found()
        return job_json(*known, minimal_json(found, base), base)

    @router.get(_REPO + "/actions/jobs/{job_id}/logs")
    def log(request: Request, job_id: int) -> Response:
        found = access.repository(request, "actions")
        known = found.actions.job(job_id)
        if known is None:
            raise not_found()
        return Response(status_code=302, headers={"Location": base + found.actions.blob_address(known[1])})

    @router.get(_REPO + "/check-suites/{suite_id}")
    def suite(request: Request, suite_id: int) -> Json:
        found = access.repository(request, "checks")
        for run in found.actions.runs.values():
            if run.suite_id == suite_id:
                commit = found.bare.commit(run.head_sha)
                return suite_json(run, minimal_json(found, base), commit, checks.actions_app(hub))
        raise not_found()

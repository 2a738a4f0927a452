"""GitHub Actions: failed runs and what their jobs logged."""

from collections import deque
from typing import Any
from urllib.parse import urljoin

import httpx
from github import UnknownObjectException
from github.Repository import Repository

from bot.github.failures import classify
from bot.github.logs import failing_part, readable
from store.scrub import scrub
from workers.ports import CiFailure, FailedJob

_FAILED = frozenset({"failure", "timed_out", "startup_failure"})
WRITERS_TRIGGERS = frozenset(
    {"push", "pull_request", "merge_group", "schedule", "workflow_dispatch", "repository_dispatch"}
)
"""Events that start runs on a branch of the repository itself only for those who may push to it. Others (a comment, an
issue, a star, a review, `pull_request_target`) let strangers make a run fail, on the default branch or on a PR's.
https://docs.github.com/en/actions/reference/workflows-and-actions/events-that-trigger-workflows
"""
_MOST_JOBS = 10
_LOG_ROOM = 40_000
"""Characters that all jobs' logs share."""
_TAIL_BYTES = 8_000_000
"""Of a longer log only the end is read: the failing step stands there."""
_TIMEOUT_S = 30.0
_MOST_REDIRECTS = 5


def read_failure(repository: Repository, run_id: int) -> CiFailure:
    """Return a workflow run with the logs of the jobs that failed in its latest attempt."""
    url = f"{repository.url}/actions/runs/{run_id}"
    _, run = repository.requester.requestJsonAndCheck("GET", url)
    failed = [job for job in _jobs(repository, url) if job.get("conclusion") in _FAILED]
    shown = failed[:_MOST_JOBS]
    jobs = [_failed_job(repository, job, _LOG_ROOM // len(shown)) for job in shown]
    jobs += [FailedJob(job["name"], _failed_steps(job), "") for job in failed[_MOST_JOBS:]]
    return CiFailure(
        run_id=run_id,
        name=run.get("name") or "CI",
        head_sha=run["head_sha"],
        head_branch=run.get("head_branch") or "",
        url=run["html_url"],
        jobs=jobs,
    )


def failed_run_of_suite(repository: Repository, suite_id: int) -> int | None:
    """Return the failed workflow run that a check suite belongs to, or None where it is another service's.

    Runs that anybody can start are left out, see `WRITERS_TRIGGERS`.
    """
    _, data = repository.requester.requestJsonAndCheck(
        "GET", f"{repository.url}/actions/runs", parameters={"check_suite_id": str(suite_id), "per_page": "100"}
    )
    failed = [
        run
        for run in data["workflow_runs"]
        if run.get("conclusion") in _FAILED
        and run.get("event") in WRITERS_TRIGGERS
        and run.get("check_suite_id", suite_id) == suite_id
    ]
    return int(failed[0]["id"]) if failed else None


def second_attempt(repository: Repository, run_id: int) -> bool | None:
    """Return whether a second attempt of a run is under way; None where there has been the first one alone."""
    _, run = repository.requester.requestJsonAndCheck("GET", f"{repository.url}/actions/runs/{run_id}")
    if run.get("status") != "completed":
        return True
    return None if int(run.get("run_attempt") or 1) == 1 else False


def rerun_failed_jobs(repository: Repository, run_id: int) -> None:
    """Have the failed jobs of a run, and those that need them, run once more.

    https://docs.github.com/en/rest/actions/workflow-runs#re-run-failed-jobs-from-a-workflow-run
    """
    repository.requester.requestJsonAndCheck(
        "POST", f"{repository.url}/actions/runs/{run_id}/rerun-failed-jobs", input={}
    )


def failing_jobs(repository: Repository, run_id: int, branch: str) -> frozenset[str]:
    """Return the names of the jobs that fail in the newest complete run of the same workflow on `branch`."""
    _, run = repository.requester.requestJsonAndCheck("GET", f"{repository.url}/actions/runs/{run_id}")
    _, data = repository.requester.requestJsonAndCheck(
        "GET",
        f"{repository.url}/actions/runs",
        parameters={"branch": branch, "status": "completed", "per_page": "100"},
    )
    same = [
        other
        for other in data["workflow_runs"]
        if other.get("workflow_id") == run.get("workflow_id") and other["id"] != run_id
    ]
    if not same or same[0].get("conclusion") not in _FAILED:
        return frozenset()
    url = f"{repository.url}/actions/runs/{same[0]['id']}"
    return frozenset(job["name"] for job in _jobs(repository, url) if job.get("conclusion") in _FAILED)


def _jobs(repository: Repository, run_url: str) -> list[dict[str, Any]]:
    jobs: list[dict[str, Any]] = []
    for page in range(1, 11):
        _, data = repository.requester.requestJsonAndCheck(
            "GET", f"{run_url}/jobs", parameters={"filter": "latest", "per_page": "100", "page": str(page)}
        )
        jobs += data["jobs"]
        if len(data["jobs"]) < 100:
            break
    return jobs


def _failed_job(repository: Repository, job: dict[str, Any], room: int) -> FailedJob:
    try:
        raw = _log(repository, job["id"])
    except UnknownObjectException:
        raw = b""  # logs are deleted after a while; the names of the steps are still worth something
    return FailedJob(job["name"], _failed_steps(job), scrub(failing_part(readable(raw), room)))


def _failed_steps(job: dict[str, Any]) -> list[str]:
    return [step["name"] for step in job.get("steps") or [] if step.get("conclusion") in _FAILED]


def _log(repository: Repository, job_id: int) -> bytes:
    """Return the end of a job's log.

    GitHub answers with the address of a blob that refuses our Authorization header: it is not sent there.
    https://docs.github.com/en/rest/actions/workflow-jobs#download-job-logs-for-a-workflow-run
    """
    path = f"{repository.url}/actions/jobs/{job_id}/logs"
    headers, data = repository.requester.requestJsonAndCheck("GET", path)
    location = headers.get("location")
    if not location:
        # A server that sends the log itself.
        return str(data.get("data", "") if isinstance(data, dict) else data or "").encode()
    return _download(urljoin(f"{repository.requester.base_url}/", str(location)))


def _download(url: str) -> bytes:
    tail: deque[bytes] = deque()
    size = 0
    with (
        httpx.Client(timeout=_TIMEOUT_S, follow_redirects=True, max_redirects=_MOST_REDIRECTS) as client,
        client.stream("GET", url) as response,
    ):
        if response.status_code in (404, 410):
            return b""
        if response.is_error:
            raise classify("read a job's log", response.status_code, dict(response.headers), response.reason_phrase)
        for chunk in response.iter_bytes():
            tail.append(chunk)
            size += len(chunk)
            while size - len(tail[0]) >= _TAIL_BYTES:
                size -= len(tail.popleft())
    return b"".join(tail)

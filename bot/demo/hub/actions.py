"""GitHub Actions without running anything: runs, jobs and logs that a story puts there.

https://docs.github.com/en/rest/actions/workflow-jobs#download-job-logs-for-a-workflow-run
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count
from typing import Any, Literal
from urllib.parse import quote

from bot.demo.hub.git import Commit

Json = dict[str, Any]
Conclusion = Literal["success", "failure"]


@dataclass(frozen=True)
class Job:
    id: int
    name: str
    conclusion: Conclusion
    log: str | bytes
    """What the job printed, as it printed it."""
    failed_step: str = "Run the tests"


@dataclass(frozen=True)
class Run:
    id: int
    suite_id: int
    workflow: str
    number: int
    head_sha: str
    head_branch: str | None
    conclusion: Conclusion
    jobs: Sequence[Job]
    pull_requests: Sequence[Json] = ()
    event: str = "push"
    attempt: int = 1
    at: str = field(default_factory=lambda: datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))


class ActionsStore:
    """The workflow runs of one repository, and the addresses that their logs can be read at for a while."""

    def __init__(self) -> None:
        self.runs: dict[int, Run] = {}
        self._ids = count(1_000_001)
        self._blobs: dict[str, Job] = {}

    def add(
        self,
        *,
        workflow: str,
        head_sha: str,
        head_branch: str | None,
        conclusion: Conclusion,
        jobs: Sequence[tuple[str, str | bytes]],
        pull_requests: Sequence[Json] = (),
        event: str = "push",
    ) -> Run:
        """Keep a finished run; `jobs` are names and logs, all with the run's conclusion."""
        run = Run(
            id=next(self._ids),
            suite_id=next(self._ids),
            workflow=workflow,
            number=len(self.runs) + 1,
            head_sha=head_sha,
            head_branch=head_branch,
            conclusion=conclusion,
            jobs=tuple(Job(next(self._ids), name, conclusion, log) for name, log in jobs),
            pull_requests=pull_requests,
            event=event,
        )
        self.runs[run.id] = run
        return run

    def run_again(self, run_id: int) -> Run:
        """Let a run's jobs end once more, as they did."""
        run = self.runs[run_id] = replace(self.runs[run_id], attempt=self.runs[run_id].attempt + 1)
        return run

    def job(self, job_id: int) -> tuple[Run, Job] | None:
        for run in self.runs.values():
            for job in run.jobs:
                if job.id == job_id:
                    return run, job
        return None

    def blob_address(self, job: Job) -> str:
        """Return a path where the job's log is for whoever has the address, as on GitHub's blob store."""
        secret = secrets.token_urlsafe(16)
        self._blobs[secret] = job
        return f"/_blobs/{secret}"

    def blob(self, secret: str) -> bytes | None:
        job = self._blobs.get(secret)
        if job is None:
            return None
        return job.log.encode() if isinstance(job.log, str) else job.log


def blob_answer(stores: Sequence[ActionsStore], secret: str, authorization: str) -> tuple[int, bytes]:
    """Return status and body for a log's own address. The blob store takes the address alone and no credentials."""
    if authorization:
        return 400, b"InvalidAuthenticationInfo: an Authorization header is not allowed beside a signed address"
    for store in stores:
        if (log := store.blob(secret)) is not None:
            return 200, log
    return 404, b"BlobNotFound"


def run_json(run: Run, repository: Json, commit: Commit, actor: Json, base_url: str) -> Json:
    """Return GitHub's `workflow-run`; `repository` is a `minimal-repository`, `actor` a `simple-user`."""
    url = f"{repository['url']}/actions/runs/{run.id}"
    return {
        "id": run.id,
        "name": run.workflow,
        "node_id": f"WFR_{run.id}",
        "head_branch": run.head_branch,
        "head_sha": run.head_sha,
        "path": f".github/workflows/{quote(run.workflow)}.yml",
        "display_title": commit.message.split("\n", 1)[0],
        "run_number": run.number,
        "run_attempt": run.attempt,
        "event": run.event,
        "status": "completed",
        "conclusion": run.conclusion,
        "workflow_id": workflow_id(run.workflow),
        "check_suite_id": run.suite_id,
        "check_suite_node_id": f"CS_{run.suite_id}",
        "url": url,
        "html_url": f"{base_url}/{repository['full_name']}/actions/runs/{run.id}",
        "pull_requests": list(run.pull_requests),
        "created_at": run.at,
        "updated_at": run.at,
        "run_started_at": run.at,
        "actor": actor,
        "triggering_actor": actor,
        "jobs_url": f"{url}/jobs",
        "logs_url": f"{url}/logs",
        "check_suite_url": f"{repository['url']}/check-suites/{run.suite_id}",
        "artifacts_url": f"{url}/artifacts",
        "cancel_url": f"{url}/cancel",
        "rerun_url": f"{url}/rerun",
        "previous_attempt_url": None,
        "workflow_url": f"{repository['url']}/actions/workflows/{workflow_id(run.workflow)}",
        "referenced_workflows": [],
        "head_commit": simple_commit(commit),
        "repository": repository,
        "head_repository": repository,
    }


def job_json(run: Run, job: Job, repository: Json, base_url: str) -> Json:
    """Return GitHub's `job`: three steps, the second of which failed where the job did."""

    def step(number: int, name: str, conclusion: str) -> Json:
        times = {"started_at": run.at, "completed_at": run.at}
        return {"name": name, "status": "completed", "conclusion": conclusion, "number": number, **times}

    skipped = "success" if job.conclusion == "success" else "skipped"
    return {
        "id": job.id,
        "run_id": run.id,
        "workflow_name": run.workflow,
        "head_branch": run.head_branch,
        "run_url": f"{repository['url']}/actions/runs/{run.id}",
        "run_attempt": run.attempt,
        "node_id": f"CR_{job.id}",
        "head_sha": run.head_sha,
        "url": f"{repository['url']}/actions/jobs/{job.id}",
        "html_url": f"{base_url}/{repository['full_name']}/actions/runs/{run.id}/job/{job.id}",
        "status": "completed",
        "conclusion": job.conclusion,
        "created_at": run.at,
        "started_at": run.at,
        "completed_at": run.at,
        "name": job.name,
        "steps": [
            step(1, "Set up job", "success"),
            step(2, job.failed_step, job.conclusion),
            step(3, "Upload the report", skipped),
        ],
        "check_run_url": f"{repository['url']}/check-runs/{job.id}",
        "labels": ["ubuntu-latest"],
        "runner_id": 1,
        "runner_name": "Hosted Agent",
        "runner_group_id": 2,
        "runner_group_name": "GitHub Actions",
    }


def suite_json(run: Run, repository: Json, commit: Commit, app: Json) -> Json:
    """Return GitHub's `check-suite` of a run; `app` is an `integration`."""
    url = f"{repository['url']}/check-suites/{run.suite_id}"
    return {
        "id": run.suite_id,
        "node_id": f"CS_{run.suite_id}",
        "head_branch": run.head_branch,
        "head_sha": run.head_sha,
        "status": "completed",
        "conclusion": run.conclusion,
        "url": url,
        "before": commit.parents[0] if commit.parents else None,
        "after": run.head_sha,
        "pull_requests": list(run.pull_requests),
        "app": app,
        "created_at": run.at,
        "updated_at": run.at,
        "latest_check_runs_count": len(run.jobs),
        "check_runs_url": f"{url}/check-runs",
        "head_commit": simple_commit(commit),
        "repository": repository,
    }


def workflow_json(run: Run, repository: Json, base_url: str) -> Json:
    """Return the workflow of a run, as webhooks carry it."""
    path = f".github/workflows/{quote(run.workflow)}.yml"
    return {
        "id": workflow_id(run.workflow),
        "node_id": f"W_{workflow_id(run.workflow)}",
        "name": run.workflow,
        "path": path,
        "state": "active",
        "created_at": run.at,
        "updated_at": run.at,
        "url": f"{repository['url']}/actions/workflows/{workflow_id(run.workflow)}",
        "html_url": f"{base_url}/{repository['full_name']}/blob/main/{path}",
        "badge_url": f"{base_url}/{repository['full_name']}/workflows/{quote(run.workflow)}/badge.svg",
    }


def workflow_id(name: str) -> int:
    return sum(name.encode()) + 1


def simple_commit(commit: Commit) -> Json:
    """Return GitHub's `simple-commit`."""
    return {
        "id": commit.sha,
        "tree_id": commit.tree,
        "message": commit.message,
        "timestamp": commit.committer_date,
        "author": {"name": commit.author.name, "email": commit.author.email},
        "committer": {"name": commit.committer.name, "email": commit.committer.email},
    }

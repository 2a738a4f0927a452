"""Check runs that the App writes, and workflow runs that a story lets end."""

from collections.abc import Mapping, Sequence
from typing import Any

from bot.demo.hub import payloads
from bot.demo.hub.actions import Conclusion, Run
from bot.demo.hub.hub import Hub, invalid, not_found, text_of
from bot.demo.hub.issue_shapes import minimal_json, pull_json
from bot.demo.hub.shapes import integration_json, user_json
from bot.demo.hub.state import CheckRun, Repository, User, now

ACTIONS_APP = 15368
_FIELDS = ("name", "head_sha", "status", "conclusion", "external_id", "details_url", "started_at", "completed_at")


def create(hub: Hub, repository: Repository, body: Mapping[str, Any]) -> CheckRun:
    """Keep a check run on a commit.

    Raises:
        HubRefusal: 422 where the commit is not there or the run has ended without a conclusion.
    """
    with hub.state.lock:
        head_sha = text_of(body, "head_sha", "CheckRun")
        if repository.bare.resolve(head_sha) != head_sha:
            raise invalid("CheckRun", "head_sha")
        run = CheckRun(hub.state.next_id(), text_of(body, "name", "CheckRun"), head_sha)
        _change(run, body)
        repository.check_runs[run.id] = run
    return run


def edit(hub: Hub, repository: Repository, run_id: int, body: Mapping[str, Any]) -> CheckRun:
    with hub.state.lock:
        run = find(repository, run_id)
        _change(run, body)
    return run


def find(repository: Repository, run_id: int) -> CheckRun:
    run = repository.check_runs.get(run_id)
    if run is None:
        raise not_found()
    return run


def finish_workflow(
    hub: Hub,
    repository: Repository,
    *,
    conclusion: Conclusion,
    head_sha: str,
    branch: str | None,
    workflow: str,
    jobs: Sequence[tuple[str, str | bytes]],
) -> Run:
    """Let a workflow run end on a commit: its jobs become check runs, and both webhooks are sent."""
    with hub.state.lock:
        if repository.bare.resolve(head_sha) != head_sha:
            raise invalid("WorkflowRun", "head_sha")
        open_here = [
            issue
            for issue in repository.pulls()
            if issue.pull and issue.state == "open" and issue.pull.head_ref == branch
        ]
        pulls = [payloads.pull_request_minimal(pull_json(issue, repository, hub.base_url)) for issue in open_here]
        run = repository.actions.add(
            workflow=workflow,
            head_sha=head_sha,
            head_branch=branch,
            conclusion=conclusion,
            jobs=jobs,
            pull_requests=pulls,
        )
        for job in run.jobs:
            repository.check_runs[job.id] = CheckRun(
                job.id, job.name, head_sha, "completed", conclusion, started_at=run.at, completed_at=run.at
            )
        _tell_of_end(hub, repository, run)
    return run


def run_again(hub: Hub, repository: Repository, run_id: int) -> None:
    """Let a run's jobs end a second time, at once and as they did: no flake.

    Raises:
        HubRefusal: there is no such run (404).
    """
    with hub.state.lock:
        if run_id not in repository.actions.runs:
            raise not_found()
        _tell_of_end(hub, repository, repository.actions.run_again(run_id))


def actions_app(hub: Hub) -> dict[str, Any]:
    """Return GitHub's `integration` of its own Actions."""
    github = user_json(User(9919, "github"), hub.base_url)
    created_at = "2018-07-30T09:30:17Z"
    return integration_json(
        ACTIONS_APP, "github-actions", {"actions": "write"}, owner=github, base=hub.base_url, created_at=created_at
    )


def _tell_of_end(hub: Hub, repository: Repository, run: Run) -> None:
    common = hub.common(repository, repository.owner)
    minimal, commit = minimal_json(repository, hub.base_url), repository.bare.commit(run.head_sha)
    hub.sender.send("workflow_run", payloads.workflow_run(common, run, minimal, commit, hub.base_url))
    hub.sender.send("check_suite", payloads.check_suite(common, run, minimal, commit, actions_app(hub)))


def _change(run: CheckRun, body: Mapping[str, Any]) -> None:
    for name in _FIELDS:
        if name in body:
            setattr(run, name, body[name])
    output = body.get("output", run.output)
    if not isinstance(output, Mapping):
        raise invalid("CheckRun", "output")
    run.output = output
    if run.conclusion is not None:
        # https://docs.github.com/en/rest/checks/runs: "Providing conclusion will automatically set the status".
        run.status = "completed"
        run.completed_at = run.completed_at or now()
    elif run.status == "completed":
        raise invalid("CheckRun", "conclusion", "missing_field")
    if run.status != "queued":
        run.started_at = run.started_at or now()

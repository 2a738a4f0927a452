"""Check runs: one for each task and commit, found again by its external id."""

from collections.abc import Sequence
from typing import Any

from github import UnknownObjectException
from github.Repository import Repository

from bot.github.limits import CHECK_OUTPUT_LIMIT, fit, fit_title
from store.scrub import scrub
from workers.ports import CheckRunContent, CheckRunInfo

_LONGEST_MESSAGE = 2000
_MOST_ANNOTATIONS = 50
"""In one call; see https://docs.github.com/en/rest/checks/runs#create-a-check-run."""


def upsert_check(
    repository: Repository, head_sha: str, external_id: str, content: CheckRunContent, known_id: int | None
) -> int:
    """Give the check run of `external_id` on `head_sha` its face, and return its id.

    One that stands on another commit is left there: GitHub cannot move it.
    """
    run = _known(repository, known_id, head_sha) or _find(repository, head_sha, external_id, content.name)
    wanted = _body(content)
    if run is None:
        # GitHub numbers check runs over all repositories; the same external id may stand on several commits.
        wanted |= {"name": content.name, "head_sha": head_sha, "external_id": external_id}
        _, made = repository.requester.requestJsonAndCheck("POST", f"{repository.url}/check-runs", input=wanted)
        return int(made["id"])
    if not _shows(run, wanted):
        repository.requester.requestJsonAndCheck("PATCH", f"{repository.url}/check-runs/{run['id']}", input=wanted)
    return int(run["id"])


def read_suite(repository: Repository, suite_id: int) -> Sequence[CheckRunInfo]:
    """Return the check runs of a suite.

    https://docs.github.com/en/rest/checks/runs#list-check-runs-in-a-check-suite
    """
    url = f"{repository.url}/check-suites/{suite_id}/check-runs"
    _, data = repository.requester.requestJsonAndCheck("GET", url, parameters={"filter": "all", "per_page": "100"})
    return [CheckRunInfo(int(run["id"]), run.get("external_id") or "") for run in data["check_runs"]]


def _body(content: CheckRunContent) -> dict[str, Any]:
    body: dict[str, Any] = {
        "status": "in_progress" if content.conclusion is None else "completed",
        "output": {
            "title": fit_title(scrub(content.title)),
            "summary": fit(scrub(content.summary), CHECK_OUTPUT_LIMIT),
        },
    }
    if content.annotations:
        body["output"]["annotations"] = [
            {
                "path": note.path,
                "start_line": note.line,
                "end_line": note.line,
                "annotation_level": "failure",
                "message": scrub(note.message)[:_LONGEST_MESSAGE],
            }
            for note in content.annotations[:_MOST_ANNOTATIONS]
        ]
    if content.conclusion is not None:
        body["conclusion"] = content.conclusion
    return body


def _shows(run: dict[str, Any], wanted: dict[str, Any]) -> bool:
    output = run.get("output") or {}
    return (
        run.get("status") == wanted["status"]
        and run.get("conclusion") == wanted.get("conclusion")
        and output.get("title") == wanted["output"]["title"]
        and (output.get("summary") or "").strip() == wanted["output"]["summary"].strip()
    )


def _known(repository: Repository, known_id: int | None, head_sha: str) -> dict[str, Any] | None:
    if known_id is None:
        return None
    try:
        _, run = repository.requester.requestJsonAndCheck("GET", f"{repository.url}/check-runs/{known_id}")
    except UnknownObjectException:
        return None
    return run if run["head_sha"] == head_sha else None


def _find(repository: Repository, head_sha: str, external_id: str, name: str) -> dict[str, Any] | None:
    _, data = repository.requester.requestJsonAndCheck(
        "GET",
        f"{repository.url}/commits/{head_sha}/check-runs",
        parameters={"check_name": name, "filter": "all", "per_page": "100"},
    )
    return next((run for run in data["check_runs"] if run.get("external_id") == external_id), None)

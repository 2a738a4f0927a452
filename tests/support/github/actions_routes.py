"""GitHub Actions, of which the stateful GitHub has only stubs: runs, jobs, logs and the suites of runs."""

from typing import TYPE_CHECKING, Any

from bot.demo.hub.actions import Run, job_json, run_json, suite_json
from tests.support.github.mirror import Hosted
from tests.support.github.telling import Telling
from tests.support.github.wire import Request, Response, as_json, error

if TYPE_CHECKING:
    from tests.support.github.proxy import Proxy

Json = Any


class ActionsRoutes:
    def __init__(self, proxy: "Proxy", telling: Telling) -> None:
        self._proxy = proxy
        self._telling = telling

    def _shape(self, hosted: Hosted, run: Run) -> Json:
        owner = self._telling.simple_user(hosted.full_name.partition("/")[0])
        return run_json(
            run, self._telling.minimal(hosted), hosted.bare.commit(run.head_sha), owner, self._proxy.base_url
        )

    def runs(self, request: Request, hosted: Hosted, _: str) -> Response | None:
        runs = [run for run in reversed(hosted.actions.runs.values()) if _wanted(run, request.query)]
        return as_json(200, {"total_count": len(runs), "workflow_runs": [self._shape(hosted, r) for r in runs]})

    def run(self, _: Request, hosted: Hosted, run_id: str) -> Response | None:
        run = hosted.actions.runs.get(int(run_id))
        return as_json(200, self._shape(hosted, run)) if run else error(404, "Not Found")

    def jobs(self, request: Request, hosted: Hosted, run_id: str) -> Response | None:
        run = hosted.actions.runs.get(int(run_id))
        if run is None:
            return error(404, "Not Found")
        jobs = [job_json(run, job, self._telling.minimal(hosted), self._proxy.base_url) for job in run.jobs]
        return as_json(200, {"total_count": len(jobs), "jobs": jobs})

    def job(self, _: Request, hosted: Hosted, job_id: str) -> Response | None:
        found = hosted.actions.job(int(job_id))
        if found is None:
            return error(404, "Not Found")
        return as_json(200, job_json(*found, self._telling.minimal(hosted), self._proxy.base_url))

    def log(self, request: Request, hosted: Hosted, job_id: str) -> Response | None:
        found = hosted.actions.job(int(job_id))
        if found is None:
            return error(404, "Not Found")
        # 127.0.0.1 and localhost are two hosts to a client, as GitHub and its blob store are.
        host = self._proxy.base_url.replace("localhost", "127.0.0.1")
        return Response(302, b"", {"Location": host + hosted.actions.blob_address(found[1])})

    def rerun(self, _: Request, hosted: Hosted, run_id: str) -> Response | None:
        if int(run_id) not in hosted.actions.runs:
            return error(404, "Not Found")
        hosted.actions.run_again(int(run_id))
        return as_json(201, {})

    def suite(self, _: Request, hosted: Hosted, suite_id: str) -> Response | None:
        for run in hosted.actions.runs.values():
            if run.suite_id == int(suite_id):
                commit = hosted.bare.commit(run.head_sha)
                return as_json(200, suite_json(run, self._telling.minimal(hosted), commit, self._telling.actions_app()))
        return None


def _wanted(run: Run, query: dict[str, str]) -> bool:
    return (
        query.get("head_sha", run.head_sha) == run.head_sha and query.get("branch", run.head_branch) == run.head_branch
    )

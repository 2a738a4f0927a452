"""Starts and stops the local GitHub, and tells its stories."""

import socket
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException as StarletteHTTPException

from bot.demo.hub import NAME, api_app, api_git, api_issues, api_pulls, api_repository, checks, issues, pages, pulls
from bot.demo.hub.access import Access
from bot.demo.hub.git import BareRepository, Identity
from bot.demo.hub.hub import Hub, HubRefusal
from bot.demo.hub.issue_shapes import check_run_json, comment_json, issue_json, pull_json
from bot.demo.hub.state import Permission, Repository, State, User
from bot.demo.hub.story import ReviewState
from bot.demo.hub.webhooks import Delivery, WebhookSender
from bot.errors import BotError

Json = dict[str, Any]

PERMISSIONS: Mapping[str, str] = {
    "metadata": "read",
    "contents": "write",
    "issues": "write",
    "pull_requests": "write",
    "checks": "write",
    "actions": "read",
}


class LocalHub:
    """acrouter's local GitHub on a port of this machine. It is a `bot.demo.hub.story.Story`.

    Args:
        port: a free TCP port of the loopback address.
        webhook_url: where webhooks go, or None for nowhere.
        webhook_secret: signs them.
        app_id: the App that may mint tokens here.
        private_key_pem: the App's private RSA key (PEM); only its public half is used.
        permissions: what the installation grants.
    """

    def __init__(
        self,
        port: int,
        webhook_url: str | None,
        webhook_secret: str,
        app_id: int,
        private_key_pem: str,
        *,
        slug: str = "acrouter",
        installation_id: int = 1,
        permissions: Mapping[str, str] = PERMISSIONS,
    ) -> None:
        self.port = port
        self.base_url = f"http://localhost:{port}"
        self.installation_id = installation_id
        self._folder = tempfile.TemporaryDirectory(prefix="acrouter-hub-")
        self._sender = WebhookSender(webhook_url, webhook_secret)
        self._hub = Hub(State(app_id, slug, installation_id, permissions), self._sender, self.base_url)
        self.app = application(self._hub, private_key_pem)
        config = uvicorn.Config(
            self.app,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=3,
        )
        self._server = uvicorn.Server(config)
        # Named by its protocol: asyncio sends small answers at once on such sockets alone.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        # A port that was ours a moment ago is free again at once.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, name="local-hub", daemon=True
        )

    def __enter__(self) -> "LocalHub":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start serving; returns when the port answers.

        Raises:
            BotError: the port is taken, or it did not come up in time.
        """
        try:
            self._socket.bind(("127.0.0.1", self.port))
            self._socket.listen()
        except OSError as error:
            raise BotError(f"{NAME} cannot listen on 127.0.0.1:{self.port}: {error.strerror}") from error
        self._sender.start()
        self._thread.start()
        deadline = time.monotonic() + 15
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise BotError(f"{NAME} did not come up on 127.0.0.1:{self.port}")
            time.sleep(0.01)

    def stop(self) -> None:
        self._server.should_exit = True
        if self._thread.ident:
            self._thread.join(10)
            self._sender.stop()
        self._socket.close()
        self._folder.cleanup()

    @property
    def webhook_url(self) -> str | None:
        return self._sender.url

    @webhook_url.setter
    def webhook_url(self, url: str | None) -> None:
        self._sender.url = url

    @property
    def deliveries(self) -> list[Delivery]:
        """Every webhook that was sent, in order."""
        return list(self._sender.deliveries)

    def settle(self) -> None:
        """Wait until every webhook so far has been sent."""
        self._sender.settle()

    # The story's verbs.

    def create_repository(self, full_name: str, from_git: Path) -> None:
        state = self._hub.state
        owner, _, name = full_name.partition("/")
        bare = BareRepository.copy_of(from_git, Path(self._folder.name) / owner / f"{name}.git")
        with state.lock:
            repository = Repository(state.next_id(), state.user(owner), name, bare)
            state.repositories[full_name.lower()] = repository
        self.set_permission("maintainer", "write", repository=full_name)

    def set_permission(self, login: str, permission: Permission, *, repository: str = "") -> None:
        self._hub.state.user(login)
        self._repository(repository).collaborators[login.lower()] = permission

    def open_issue(self, title: str, body: str = "", *, by: str = "maintainer", repository: str = "") -> int:
        return issues.create(self._hub, self._repository(repository), title, body, self._user(by)).number

    def close_issue(self, number: int, *, by: str = "maintainer", repository: str = "") -> None:
        found = self._repository(repository)
        issues.edit(self._hub, found, issues.find(found, number), {"state": "closed"}, self._user(by))

    def label(self, number: int, name: str, *, by: str = "maintainer", repository: str = "") -> None:
        found = self._repository(repository)
        issues.add_labels(self._hub, found, issues.find(found, number), [name], self._user(by))

    def unlabel(self, number: int, name: str, *, by: str = "maintainer", repository: str = "") -> None:
        found = self._repository(repository)
        issues.remove_label(self._hub, found, issues.find(found, number), name, self._user(by))

    def comment(self, number: int, body: str, *, by: str = "maintainer", repository: str = "") -> int:
        found = self._repository(repository)
        return issues.add_comment(self._hub, found, issues.find(found, number), body, self._user(by)).id

    def push(
        self,
        branch: str,
        files: Mapping[str, str | bytes | None],
        *,
        message: str = "Change files",
        by: str = "maintainer",
        repository: str = "",
    ) -> str:
        found, user = self._repository(repository), self._user(by)
        with self._hub.state.lock:
            before = found.bare.branches()
            sha = found.bare.commit_files(branch, files, message, Identity(by, f"{by}@users.noreply.localhost"))
            pulls.branches_moved(self._hub, found, pulls.differences(before, found.bare.branches()), user)
        return sha

    def open_pull_request(
        self, title: str, *, head: str, base: str = "", body: str = "", by: str = "maintainer", repository: str = ""
    ) -> int:
        found = self._repository(repository)
        asked = {"title": title, "head": head, "base": base or found.bare.default_branch(), "body": body}
        return pulls.create(self._hub, found, asked, self._user(by)).number

    def merge(self, number: int, *, by: str = "maintainer", repository: str = "") -> str:
        return pulls.merge(self._hub, self._repository(repository), number, {}, self._user(by))

    def close(self, number: int, *, by: str = "maintainer", repository: str = "") -> None:
        self.close_issue(number, by=by, repository=repository)

    def review(
        self, number: int, state: ReviewState, *, by: str = "maintainer", body: str = "", repository: str = ""
    ) -> None:
        pulls.review(self._hub, self._repository(repository), number, self._user(by), state=state, body=body)

    def fail_ci(
        self,
        head_sha: str,
        branch: str | None,
        *,
        workflow: str = "ci",
        jobs: Sequence[tuple[str, str | bytes]] = (("test", "FAILED\n"),),
        repository: str = "",
    ) -> int:
        found = self._repository(repository)
        return checks.finish_workflow(
            self._hub,
            found,
            conclusion="failure",
            head_sha=head_sha,
            branch=branch,
            workflow=workflow,
            jobs=jobs,
        ).id

    def pass_ci(self, head_sha: str, branch: str | None, *, workflow: str = "ci", repository: str = "") -> int:
        return checks.finish_workflow(
            self._hub,
            self._repository(repository),
            conclusion="success",
            head_sha=head_sha,
            branch=branch,
            workflow=workflow,
            jobs=[("test", "ok\n")],
        ).id

    # What the story looks at.

    def issue(self, number: int, *, repository: str = "") -> Json:
        found = self._repository(repository)
        return issue_json(issues.find(found, number), found, self.base_url)

    def comments(self, number: int, *, repository: str = "") -> list[Json]:
        found = self._repository(repository)
        issue = issues.find(found, number)
        return [comment_json(comment, issue, found, self.base_url) for comment in issue.comments]

    def labels(self, number: int, *, repository: str = "") -> set[str]:
        return {label.name for label in issues.find(self._repository(repository), number).labels}

    def pull_requests(self, *, repository: str = "") -> list[Json]:
        found = self._repository(repository)
        return [pull_json(issue, found, self.base_url) for issue in found.pulls()]

    def check_runs(self, sha: str, *, repository: str = "") -> list[Json]:
        found = self._repository(repository)
        runs = [run for run in found.check_runs.values() if run.head_sha == sha]
        return [check_run_json(run, found, self._hub.state, self.base_url) for run in runs]

    def branches(self, *, repository: str = "") -> dict[str, str]:
        return self._repository(repository).bare.branches()

    def _repository(self, full_name: str) -> Repository:
        found = self._hub.state.repositories
        chosen = self._hub.state.repository(full_name) if full_name else next(iter(found.values()), None)
        if chosen is None:
            raise LookupError(f"no repository {full_name!r} was created here")
        return chosen

    def _user(self, login: str) -> User:
        return self._hub.state.user(login)


def application(hub: Hub, private_key_pem: str) -> FastAPI:
    """Return the web application: the API first, then git, then the pages for people."""
    app = FastAPI(title=NAME, docs_url=None, redoc_url=None, openapi_url=None)
    access = Access(hub, private_key_pem)
    for module in (api_app, api_repository, api_issues, api_pulls):
        app.include_router(module.routes(hub, access))
    app.include_router(api_git.routes(hub))
    app.include_router(pages.routes(hub))

    @app.exception_handler(HubRefusal)
    def refuse(_: Request, error: HubRefusal) -> Response:
        return JSONResponse(error.as_json(), error.status)

    @app.exception_handler(StarletteHTTPException)
    def refuse_unknown(_: Request, error: StarletteHTTPException) -> Response:
        return JSONResponse(HubRefusal(error.status_code, error.detail).as_json(), error.status_code)

    @app.exception_handler(RequestValidationError)
    def refuse_path(_: Request, error: RequestValidationError) -> Response:
        # Bodies are checked by hand, so it is a number in the path that is none.
        del error
        return JSONResponse(HubRefusal(404, "Not Found").as_json(), 404)

    @app.middleware("http")
    async def say_who(request: Request, call_next: Any) -> Response:
        response: Response = await call_next(request)
        response.headers["Server"] = NAME
        return response

    return app

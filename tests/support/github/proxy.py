"""What stands before the stateful GitHub: it checks and records each request, adds what is lacking, and has faults."""

import json
import re
import threading
import traceback
from collections.abc import Mapping
from typing import Any

from bot.demo.hub.actions import blob_answer
from bot.demo.hub.git_http import GitRequest, GitResponse, password_of, refusal, serve
from bot.demo.hub.webhooks import WebhookSender
from tests.support.github import adapt, openapi
from tests.support.github.emulate import Emulate, EmulateError
from tests.support.github.faults import AfterWork, Answer, Faults, Hold, Reset
from tests.support.github.mirror import Hosted
from tests.support.github.wire import ConnectionReset, Recorded, Request, Response, as_json, error

Json = Any
_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "date"}
_GIT = re.compile(r"/([^/]+/[^/]+?)(?:\.git)?(/info/refs|/git-upload-pack|/git-receive-pack)")
_PERMISSION = re.compile(r"/repos/([^/]+/[^/]+)/collaborators/([^/]+)/permission")
# Refs move there because we move them, so their webhooks are ours to send; the App does not subscribe to the others.
_NOT_RELAYED = {"push", "create", "delete", "check_suite", "check_run", "workflow_run", "repository", "label"}


class Proxy:
    """Shared by the HTTP server's threads; `lock` keeps the two sides' view of the repositories one."""

    def __init__(self, emulate: Emulate, sender: WebhookSender, base_url: str) -> None:
        from tests.support.github.lacking import Lacking

        self.emulate = emulate
        self.sender = sender
        self.base_url = base_url
        self.faults = Faults()
        self.requests: list[Recorded] = []
        self.violations: list[openapi.Violation] = []
        self.hosted: dict[str, Hosted] = {}
        self.aliases: dict[str, str] = {}
        self.lock = threading.RLock()
        self.tokens: dict[str, Mapping[str, Json]] = {}
        """Installation tokens that were minted through here: their permissions and repositories."""
        self.expired: set[str] = set()
        self.stopping = threading.Event()
        self._lacking = Lacking(self)
        self.telling = self._lacking.telling

    def find(self, full_name: str) -> Hosted | None:
        return self.hosted.get(full_name.lower())

    def answer(self, request: Request) -> Response:
        """Answer one request as GitHub would, or as a fault says."""
        if self.stopping.is_set():
            return error(503, "This GitHub is going down")
        try:
            return self._answer(request)
        except ConnectionReset:
            raise
        except Exception as failure:  # noqa: BLE001  (a double that fails must fail the test, and answer its client)
            if self.stopping.is_set():
                return error(503, "This GitHub is going down")
            problem = "the double failed: " + "".join(traceback.format_exception(failure))[-3000:]
            self.violations.append(openapi.Violation(request.method, request.plain_path, problem))
            return error(500, "Server Error")

    def _answer(self, request: Request) -> Response:
        if request.path == "/_from-emulate":
            return self._relay(request)
        if request.path.startswith("/_blobs/"):
            stores = [hosted.actions for hosted in self.hosted.values()]
            secret = request.path.removeprefix("/_blobs/")
            status, content = blob_answer(stores, secret, request.headers.get("authorization", ""))
            return self._record(request, Response(status, content, {"Content-Type": "text/plain"}))
        if not _GIT.fullmatch(request.path):
            self._check_request(request)
        action = self.faults.take(request.method, request.path)
        match action:
            case Answer():
                return self._record(request, _given(action))
            case Reset(after_work=after_work):
                if after_work:
                    self._work(request)
                self._record(request, Response(0))
                raise ConnectionReset
            case AfterWork(answer=answer):
                self._work(request)
                return self._record(request, _given(answer))
            case Hold():
                action.reached.set()
                action.gate.wait(action.timeout_s)
            case None:
                pass
        return self._record(request, self._work(request))

    def forward(self, request: Request) -> Response:
        """Let the stateful GitHub answer, and mend what it says."""
        path = request.path + (f"?{request.query_text}" if request.query_text else "")
        headers = {k: v for k, v in request.headers.items() if k not in _HOP_BY_HOP | {"host", "accept-encoding"}}
        answer = self.emulate.client.request(request.method, path, content=request.content, headers=headers)
        response = Response(
            answer.status_code,
            answer.content,
            {k.title(): v for k, v in answer.headers.items() if k not in _HOP_BY_HOP | {"content-encoding"}},
        )
        return self._mended(request, response)

    def settle(self) -> None:
        """Wait until the webhooks of all that was done so far have been sent."""
        self.emulate.settle()
        self.sender.settle()

    def perform(self, method: str, path: str, body: Json, by: str) -> Json:
        """Do what a person does: no fault, no record. Returns the decoded answer.

        Raises:
            EmulateError: it was refused.
        """
        path, _, query = path.partition("?")
        headers = {"authorization": f"Bearer token-of-{by}", "content-type": "application/json"}
        content = b"" if body is None else json.dumps(body).encode()
        response = self._work(Request(method, path, query, headers, content))
        if response.status >= 400:
            raise EmulateError(f"{method} {path}: {response.status} {response.content[:500].decode()}")
        return response.json()

    def sync(self, hosted: Hosted) -> dict[str, tuple[str | None, str | None]]:
        """Bring the stateful GitHub up to the bare repository; returns the branches that moved."""
        with self.lock:
            moved = hosted.copy_refs(self.emulate)
            for other in self.hosted.values():
                for head in other.pulls.values():
                    after = moved.get(head.ref, (None, None))[1]
                    if head.open and head.repository == hosted.full_name and after:
                        if other is not hosted:
                            other.bare.fetch_from(hosted.bare, after)
                            other.copy_objects(self.emulate, after)
                        head.sha = after
            return moved

    def _work(self, request: Request) -> Response:
        if git := _GIT.fullmatch(request.path):
            return self._git(request, git[1], git[2])
        refused = self._unauthorised(request)
        if refused:
            return refused
        ours = self._lacking.answer(request)
        if ours is None:
            return self.forward(request)
        self._check_response(request, ours)
        return ours

    def _unauthorised(self, request: Request) -> Response | None:
        token = request.token
        # The stateful GitHub itself checks the App's own tokens (JWTs), and takes no token at all for a visitor.
        if not token or token.startswith("eyJ") or token in self.emulate.tokens:
            return None
        if token in self.tokens and token not in self.expired:
            return None
        return error(401, "Bad credentials")

    def _git(self, request: Request, full_name: str, path: str) -> Response:
        hosted = self.find(full_name)
        if hosted is None:
            return _of_git(refusal(404, "Repository not found."))
        asked = GitRequest(request.method, path, request.query_text, request.headers, request.content)
        password = password_of(request.headers.get("authorization", ""))
        token = self.tokens.get(password)
        if token is None or password in self.expired:
            return _of_git(refusal(401, "Authentication failed."))
        may = token["permissions"].get("contents", "none")
        inside = token["repositories"] is None or full_name.lower() in token["repositories"]
        if not inside or may == "none" or (asked.writes and may != "write"):
            return _of_git(refusal(403, "Permission to the repository denied."))
        answer = serve(hosted.bare.path, asked, "acrouter[bot]")
        if path == "/git-receive-pack":
            self.telling.tell_moved(hosted, self.sync(hosted), None)
        return _of_git(answer)

    def _mended(self, request: Request, response: Response) -> Response:
        if "json" not in response.headers.get("Content-Type", "") or not response.content:
            return response
        body = response.json()
        if request.path.endswith("/access_tokens") and response.status == 201:
            chosen = body.get("repositories")
            names = None if chosen is None else {repository["full_name"].lower() for repository in chosen}
            self.tokens[body["token"]] = {"permissions": body["permissions"], "repositories": names}
        if asked := _PERMISSION.fullmatch(request.plain_path):
            response, body = self._permission(response, body, asked[1], asked[2])
        with self.lock:
            mended = adapt.mend(body, self.find, self.aliases)
        return Response(response.status, json.dumps(mended).encode(), response.headers)

    def _permission(self, response: Response, body: Json, full_name: str, login: str) -> tuple[Response, Json]:
        hosted = self.find(full_name)
        if hosted is None:
            return response, body
        if response.status == 404:
            user = self.emulate.client.get(f"/users/{login}")
            if user.status_code != 200:
                return response, body
            # Everybody may read a public repository; only strangers to the stateful GitHub are not found.
            body = {"permission": "read", "role_name": "read", "user": user.json()}
        return Response(200, b"", response.headers), adapt.permission(body, hosted, login)

    def _relay(self, request: Request) -> Response:
        """Hand a webhook of the stateful GitHub's on to the App, mended."""
        event, payload = request.headers["x-github-event"], request.json()
        with self.lock:
            if event not in _NOT_RELAYED:
                payload = adapt.mend(payload, self.find, self.aliases)
                self.sender.send(*self.telling.complete(event, payload))
        return Response(204)

    def _check_request(self, request: Request) -> None:
        body = request.json()
        if body is None and request.content:
            self.violations.append(openapi.Violation(request.method, request.path, "the body is no JSON"))
            return
        self.violations += openapi.check_request(request.method, request.plain_path, request.query, body)

    def _check_response(self, request: Request, response: Response) -> None:
        body = response.json() if "json" in response.headers.get("Content-Type", "") else None
        self.violations += openapi.check_response(request.method, request.plain_path, response.status, body)

    def _record(self, request: Request, response: Response) -> Response:
        recorded = Recorded(
            request.method, request.plain_path, request.query, request.json(), request.token, response.status
        )
        with self.lock:
            self.requests.append(recorded)
        return response


def _given(answer: Answer) -> Response:
    if answer.body is None:
        return Response(answer.status, b"", answer.headers)
    return as_json(answer.status, answer.body, answer.headers)


def _of_git(answer: GitResponse) -> Response:
    return Response(answer.status, answer.body, answer.headers)

"""github.com's sign-in, doubled: the App's web flow with PKCE, memberships, and what each person can read."""

import base64
import hashlib
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any
from urllib.parse import urlencode

import uvicorn
from fastapi import FastAPI, Form, HTTPException, Request
from fastapi.responses import JSONResponse, RedirectResponse

from tests.support.services import free_port, wait_until

CLIENT_ID, CLIENT_SECRET = "Iv1.test", "the-client-secret"


@dataclass
class Person:
    login: str
    organisations: dict[str, str] = field(default_factory=dict)
    """Organisation -> active or pending."""
    teams: dict[tuple[str, str], str] = field(default_factory=dict)
    repositories: list[int] = field(default_factory=list)


@dataclass
class People:
    """Who is signed in to GitHub in this browser, and what GitHub knows of them."""

    url: str
    me: Person
    tokens: dict[str, Person] = field(default_factory=dict)
    codes: dict[str, tuple[str, Person]] = field(default_factory=dict)
    """code -> (challenge, person)"""
    down: bool = False


@contextmanager
def github_people(me: Person) -> Iterator[People]:
    """Serve on a port of its own."""
    port = free_port()
    people = People(f"http://127.0.0.1:{port}", me)
    server = uvicorn.Server(uvicorn.Config(_app(people), port=port, log_config=None))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    wait_until(lambda: server.started, what="GitHub's double")
    try:
        yield people
    finally:
        server.should_exit = True
        thread.join(10)
        time.sleep(0)


def _app(people: People) -> FastAPI:
    app = FastAPI()

    @app.get("/login/oauth/authorize")
    def authorize(
        client_id: str, redirect_uri: str, state: str, code_challenge: str, code_challenge_method: str
    ) -> RedirectResponse:
        assert (client_id, code_challenge_method) == (CLIENT_ID, "S256")
        code = secrets.token_hex(10)
        people.codes[code] = (code_challenge, people.me)
        return RedirectResponse(f"{redirect_uri}?{urlencode({'code': code, 'state': state})}")

    @app.post("/login/oauth/access_token")
    def token(
        client_id: Annotated[str, Form()],
        client_secret: Annotated[str, Form()],
        code: Annotated[str, Form()],
        code_verifier: Annotated[str, Form()],
    ) -> dict[str, str]:
        challenge, person = people.codes.pop(code, ("", None))
        hashed = base64.urlsafe_b64encode(hashlib.sha256(code_verifier.encode()).digest()).rstrip(b"=").decode()
        if person is None or hashed != challenge or (client_id, client_secret) != (CLIENT_ID, CLIENT_SECRET):
            return {"error": "bad_verification_code"}
        word = f"ghu_{secrets.token_hex(18)}"
        people.tokens[word] = person
        return {"access_token": word, "token_type": "bearer"}

    def who(request: Request) -> Person:
        if people.down:
            raise HTTPException(502)
        person = people.tokens.get(request.headers.get("authorization", "").removeprefix("Bearer "))
        if person is None:
            raise HTTPException(401)
        return person

    @app.get("/user")
    def user(request: Request) -> dict[str, str]:
        return {"login": who(request).login}

    @app.get("/user/memberships/orgs/{name}")
    def organisation(request: Request, name: str) -> dict[str, str]:
        return _membership(who(request).organisations.get(name))

    @app.get("/orgs/{name}/teams/{team}/memberships/{login}")
    def team(request: Request, name: str, team: str, login: str) -> dict[str, str]:
        return _membership(who(request).teams.get((name, team)))

    @app.get("/user/installations")
    def installations(request: Request) -> dict[str, Any]:
        who(request)
        return {"installations": [{"id": 7}]}

    @app.get("/user/installations/7/repositories")
    def repositories(request: Request, page: int, per_page: int) -> dict[str, Any]:
        mine = who(request).repositories[(page - 1) * per_page : page * per_page]
        return {"repositories": [{"id": one} for one in mine]}

    @app.exception_handler(HTTPException)
    def refuse(_request: Request, error: HTTPException) -> JSONResponse:
        return JSONResponse({"message": "no"}, error.status_code)

    return app


def _membership(state: str | None) -> dict[str, str]:
    if state is None:
        raise HTTPException(404)
    return {"state": state}

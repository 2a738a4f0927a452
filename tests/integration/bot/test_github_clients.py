"""The clients of one process: a few connections to GitHub, however many repositories there are."""

import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from pydantic import SecretStr

from bot.github.client import Clients
from bot.github.contents import read_default_branch
from store.types import utc_now
from tests.support.rows import settings
from workers.ports import RepositoryRef


class KeptOpen(BaseHTTPRequestHandler):
    """Answers as much as it takes to mint a token and to read a branch, and keeps its connections open."""

    protocol_version = "HTTP/1.1"
    lifetime = timedelta(hours=1)
    """Of the tokens that are minted now."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        end = utc_now() + self.lifetime
        self._answer({"token": f"ghs_{end.timestamp()}", "expires_at": end.isoformat()})

    def do_GET(self) -> None:
        if self.path == "/app":
            self._answer({"slug": "acrouter"})
        elif self.path.startswith("/users/"):
            end = float(self.headers["Authorization"].rpartition("_")[2])
            alive = end > utc_now().timestamp()
            self._answer({"id": 41} if alive else {"message": "Bad credentials"}, 200 if alive else 401)
        else:
            number = int(self.path.partition("tools-")[2].partition("/")[0])
            self._answer({"id": number, "name": "main", "default_branch": "main", "commit": {"sha": "1" * 40}})

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _answer(self, told: dict[str, object], status: int = 200) -> None:
        body = json.dumps(told).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def github() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), KeptOpen)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def clients(github: str) -> Clients:
    key = rsa.generate_private_key(65537, 2048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    made = settings(github_app_id=1, github_private_key=SecretStr(pem), github_api_url=github, github_write_pause_s=0.0)
    return Clients(made)


def connections() -> int:
    """Sockets of this process."""
    found = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # that of the look itself
            found += str(descriptor.readlink()).startswith("socket:")
    return found


def test_a_thread_that_serves_many_repositories_keeps_few_connections(clients: Clients) -> None:
    before = connections()
    for number in range(1, 61):
        repository = clients.repository(RepositoryRef(number, 7, f"octo/tools-{number}"))
        assert read_default_branch(repository).name == "main"
    assert connections() - before <= 2 * 8, "both ends of each are this process's"


def test_a_repository_that_is_asked_again_keeps_its_client(clients: Clients) -> None:
    repository = RepositoryRef(1, 7, "octo/tools")
    first = clients.repository(repository).requester
    assert clients.repository(repository).requester is first


def test_a_commit_finds_its_author_however_long_ago_another_repository_was_asked(
    clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GitHub refuses a dead token even where it asks for none."""
    friday, monday = RepositoryRef(1, 7, "octo/tools"), RepositoryRef(2, 7, "octo/site")
    with monkeypatch.context() as long_ago:
        long_ago.setattr(KeptOpen, "lifetime", timedelta(0))
        clients.repository(friday)
    author = clients.author(clients.repository(monday))
    assert author.email == "41+acrouter[bot]@users.noreply.github.com"

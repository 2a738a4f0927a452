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

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer({"token": f"ghs_{self.path}", "expires_at": (utc_now() + timedelta(hours=1)).isoformat()})

    def do_GET(self) -> None:
        self._answer({"name": "main", "default_branch": "main", "commit": {"sha": "1" * 40}})

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _answer(self, told: dict[str, object]) -> None:
        body = json.dumps(told).encode()
        self.send_response(200)
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

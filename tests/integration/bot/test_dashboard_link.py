"""`acrouter dashboard` prints a link only where somebody answers at it."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.support.services import free_port

ROOT = Path(__file__).resolve().parents[3]


def dashboard(folder: Path, **settings: object) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ACROUTER_")}
    environment |= {f"ACROUTER_{name.upper()}": str(value) for name, value in settings.items()}
    return subprocess.run(
        [sys.executable, "-m", "bot", "dashboard"],
        cwd=folder,
        env=environment | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def answering() -> Iterator[int]:
    """The port of somebody who answers as acrouter does."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert self.path == "/healthz"
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"status":"ok","database":"ok"}')

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def test_without_a_server_there_is_advice_and_no_new_database(tmp_path: Path) -> None:
    port = free_port()
    done = dashboard(tmp_path, port=port)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"No acrouter answers at http://127.0.0.1:{port}. Start `acrouter up`" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_link_to_the_server_that_answers(tmp_path: Path, answering: int) -> None:
    done = dashboard(tmp_path, port=answering)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"http://127.0.0.1:{answering}/sign-in/link/")


def test_a_server_elsewhere_is_found_by_its_public_address(tmp_path: Path, answering: int) -> None:
    public = f"http://localhost:{answering}"
    done = dashboard(tmp_path, port=free_port(), public_url=f"{public}/")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{public}/sign-in/link/")

"""What a git host refuses is tried a few times; where it fails, the task waits."""

from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from sandbox.checkout import Mirror
from sandbox.errors import CheckoutError, RemoteRefused, RemoteUnavailable
from sandbox.remotes import GitRemote
from tests.support.refusing_host import answering
from tests.support.repositories import make_repository

Ask = Callable[[Mirror, GitRemote, str], object]
ASKS: dict[str, Ask] = {
    "a fetch": lambda mirror, remote, _: mirror.fetch(remote, ["refs/heads/other"], timeout_s=30),
    "a push": lambda mirror, remote, sha: mirror.push(remote, sha, "acrouter/fix", expected=None, timeout_s=30),
    "a look": lambda mirror, remote, _: mirror.remote_head(remote, "main", timeout_s=30),
}


@pytest.fixture
def host(request: pytest.FixtureRequest) -> Iterator[GitRemote]:
    """A repository whose host answers every request with one status."""
    with answering(request.param) as url:
        yield GitRemote(f"{url}/acme/app", token="t0ken")


@pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS)
@pytest.mark.parametrize(
    ("host", "failure"),
    [
        (401, RemoteRefused),
        (403, RemoteRefused),
        (404, RemoteRefused),
        (429, RemoteUnavailable),
        (500, RemoteUnavailable),
        (503, RemoteUnavailable),
    ],
    indirect=["host"],
)
def test_a_refusal_is_told_from_a_failure(
    tmp_path: Path, host: GitRemote, ask: Ask, failure: type[CheckoutError]
) -> None:
    sha = make_repository(tmp_path / "upstream", {"a.txt": "a\n"})
    mirror = Mirror(tmp_path / "mirror.git", allow_local=True)
    mirror.fetch(GitRemote(str(tmp_path / "upstream")), ["refs/heads/main"], timeout_s=30)
    with pytest.raises(failure) as raised:
        ask(mirror, host, sha)
    assert type(raised.value) is failure
    assert "t0ken" not in str(raised.value)


def test_a_repository_that_does_not_come_in_time_counts_as_a_try(tmp_path: Path) -> None:
    mirror = Mirror(tmp_path / "mirror.git")
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as silent:
        remote = GitRemote(f"http://127.0.0.1:{silent.server_port}/acme/app")
        with pytest.raises(RemoteRefused, match=r"within 1 s\. Who runs acrouter can raise ACROUTER_SETUP_TIMEOUT_S"):
            mirror.fetch(remote, ["refs/heads/main"], timeout_s=1)

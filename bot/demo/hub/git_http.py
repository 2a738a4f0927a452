"""git's smart HTTP protocol for a bare repository, through git's own CGI program.

https://git-scm.com/docs/git-http-backend (RFC 3875 is CGI's own description)
"""

import base64
import binascii
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bot.demo.hub.git import ENVIRONMENT


@dataclass(frozen=True)
class GitRequest:
    method: str
    path: str
    """Below the repository: `/info/refs`, `/git-upload-pack`, `/git-receive-pack`."""
    query: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes

    @property
    def writes(self) -> bool:
        return self.path == "/git-receive-pack" or "service=git-receive-pack" in self.query


@dataclass(frozen=True)
class GitResponse:
    status: int
    headers: Mapping[str, str]
    body: bytes


def refusal(status: int, message: str) -> GitResponse:
    """Return an answer that git shows to its user; 401 makes it ask for credentials."""
    headers = {"Content-Type": "text/plain; charset=utf-8"}
    if status == 401:
        headers["WWW-Authenticate"] = 'Basic realm="git"'
    return GitResponse(status, headers, message.encode())


def password_of(authorization: str) -> str:
    """Return the password of a Basic header, or the token of a Bearer one; empty where there is none."""
    kind, _, value = authorization.partition(" ")
    if kind.lower() in ("bearer", "token"):
        return value.strip()
    if kind.lower() != "basic":
        return ""
    try:
        return base64.b64decode(value).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return ""


def serve(repository: Path, request: GitRequest, user: str) -> GitResponse:
    """Answer one request; the caller has checked what `user` may do."""
    environment = {
        **ENVIRONMENT,
        "GIT_PROJECT_ROOT": str(repository.parent),
        "GIT_HTTP_EXPORT_ALL": "1",
        "PATH_INFO": f"/{repository.name}{request.path}",
        "REQUEST_METHOD": request.method,
        "QUERY_STRING": request.query,
        "CONTENT_TYPE": request.headers.get("content-type", ""),
        "CONTENT_LENGTH": str(len(request.body)),
        "HTTP_CONTENT_ENCODING": request.headers.get("content-encoding", ""),
        "GIT_PROTOCOL": request.headers.get("git-protocol", ""),
        "REMOTE_ADDR": "127.0.0.1",
        # git lets a named user push and nobody else.
        "REMOTE_USER": user,
    }
    done = subprocess.run(
        ["git", "http-backend"], input=request.body, capture_output=True, env=environment, timeout=120, check=False
    )
    head, separator, body = done.stdout.partition(b"\r\n\r\n")
    if not separator:
        return refusal(500, f"git http-backend: {done.stderr.decode('utf-8', 'replace')[-500:]}")
    headers = dict(line.split(": ", 1) for line in head.decode("latin-1").split("\r\n"))
    status = int(headers.pop("Status", "200 OK").split()[0])
    return GitResponse(status, headers, body)

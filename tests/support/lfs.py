"""A git host's LFS server on the loopback address, which misbehaves as told, and repositories that point to it."""

import hashlib
import json
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any


def pointer(content: bytes) -> str:
    """Return the text of the pointer that stands for `content`."""
    oid = hashlib.sha256(content).hexdigest()
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {len(content)}\n"


@dataclass
class LfsHost:
    """The running server. The repository is `url`, its files are `contents`."""

    url: str
    contents: dict[str, bytes] = field(default_factory=dict)
    """By oid; what is asked for and not here is answered with an error of its own, as the API wants."""
    batch_status: int = 200
    batch_answer: bytes | None = None
    """In place of the true one."""
    file_status: int = 200
    href: str = ""
    """In place of the server's own address for files."""
    requests: list[dict[str, Any]] = field(default_factory=list)
    """Method, path, authorization and body of each."""

    def add(self, content: bytes) -> str:
        """Keep a file and return its pointer."""
        self.contents[hashlib.sha256(content).hexdigest()] = content
        return pointer(content)

    def answer(self, body: dict[str, Any]) -> bytes:
        """Return the answer to a batch request, in the words of the API's documentation."""
        if self.batch_answer is not None:
            return self.batch_answer
        root = self.url.rsplit("/", 2)[0]
        objects = []
        for wanted in body["objects"]:
            if wanted["oid"] in self.contents:
                href = self.href or f"{root}/files/{wanted['oid']}"
                action = {"href": href, "header": {"Authorization": "RemoteAuth signed"}, "expires_in": 3600}
                objects.append({**wanted, "authenticated": True, "actions": {"download": action}})
            else:
                objects.append({**wanted, "error": {"code": 404, "message": "Object does not exist"}})
        return json.dumps({"transfer": "basic", "objects": objects, "hash_algo": "sha256"}).encode()


@contextmanager
def lfs_host() -> Iterator[LfsHost]:
    """Serve `/acme/app.git` and its files."""
    host: LfsHost

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self._note(body)
            found = self.path == "/acme/app.git/info/lfs/objects/batch"
            self._answer(host.batch_status if found else 404, host.answer(body))

        def do_GET(self) -> None:
            self._note(None)
            self._answer(host.file_status, host.contents[self.path.rsplit("/", 1)[1]])

        def _note(self, body: object) -> None:
            authorization = self.headers.get("Authorization", "")
            host.requests.append(
                {"method": self.command, "path": self.path, "authorization": authorization, "body": body}
            )

        def _answer(self, status: int, content: bytes) -> None:
            self.send_response(status)
            if status in (301, 302):
                self.send_header("Location", "http://127.0.0.1:1/elsewhere")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    host = LfsHost(f"http://127.0.0.1:{listener.server_port}/acme/app")
    thread = Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield host
    finally:
        listener.shutdown()
        listener.server_close()
        thread.join(5)


def file_of(archive: Path, name: str) -> bytes:
    """Return a file's content in an archive."""
    with tarfile.open(archive) as tar:
        found = tar.extractfile(name)
        assert found is not None
        return found.read()

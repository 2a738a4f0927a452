"""The manifest flow: a page on this machine sends the browser to GitHub, which sends it back with a code.

https://docs.github.com/en/apps/sharing-github-apps/registering-a-github-app-from-a-manifest
"""

import html
import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlsplit

from bot.github_app.errors import GitHubAppError
from bot.github_app.needs import manifest
from bot.github_app.place import Place
from templates import render

_CODE_LENGTH = 200


@dataclass
class Flow:
    """One try to create an App; its pages are on the loopback address only."""

    name: str
    organisation: str
    place: Place
    public_url: str
    server: HTTPServer
    state: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    code: str = ""

    @property
    def url(self) -> str:
        """Where the browser begins."""
        return f"http://127.0.0.1:{self.server.server_port}/"

    def wait(self) -> str:
        """Serve until GitHub has sent the browser back, and return the code.

        Raises:
            GitHubAppError: nobody came within ten minutes.
        """
        self.server.timeout = 600
        while not self.code:
            self.server.handle_request()
            if getattr(self.server, "timed_out", False):
                raise GitHubAppError("Nobody came back from GitHub within ten minutes. Start the command again.")
        return self.code

    def begin_page(self) -> str:
        made = manifest(self.name, self.public_url, f"{self.url}created")
        return render(
            "github_app/begin.html.j2",
            action=html.escape(self.place.new_app_url(self.organisation, self.state), quote=True),
            manifest=html.escape(json.dumps(made), quote=True),
            name=html.escape(self.name),
        )

    def come_back(self, query: str) -> tuple[int, str]:
        """Take the code where the browser is the one that was sent out; return status and page."""
        given = {name: values[0] for name, values in parse_qs(query).items()}
        if not secrets.compare_digest(given.get("state", "").encode(), self.state.encode()):
            return 400, render("github_app/ended.html.j2", words="This is not the browser that began. Begin again.")
        code = given.get("code", "")
        if not code.isalnum() or len(code) > _CODE_LENGTH:
            return 400, render("github_app/ended.html.j2", words="GitHub sent no code. Begin again.")
        self.code = code
        return 200, render("github_app/ended.html.j2", words="The App is created. Go back to the terminal.")


@contextmanager
def started(name: str, organisation: str, place: Place, public_url: str, port: int) -> Iterator[Flow]:
    """Yield a flow whose page is up.

    Raises:
        GitHubAppError: the port is taken.
    """
    flows: list[Flow] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if parts.path == "/":
                self._send(200, flows[0].begin_page())
            elif parts.path == "/created":
                self._send(*flows[0].come_back(parts.query))
            else:
                self._send(404, render("github_app/ended.html.j2", words="There is nothing here."))

        def _send(self, status: int, page: str) -> None:
            content = page.encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Referrer-Policy", "no-referrer")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            del format, args  # the address holds the code

    class Server(HTTPServer):
        timed_out = False

        def handle_timeout(self) -> None:
            self.timed_out = True

    try:
        server = Server(("127.0.0.1", port), Handler)
    except OSError as error:
        raise GitHubAppError(f"Port {port} of this machine is taken: {error.strerror}. Give another --port.") from error
    flows.append(Flow(name, organisation, place, public_url, server))
    try:
        yield flows[0]
    finally:
        server.server_close()

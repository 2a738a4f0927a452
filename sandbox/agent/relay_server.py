"""Runs inside a sandbox, around a command line agent: a web server on the loopback address whose every request goes to
the host, over the two descriptors that the guest gave. There is no other way out.

It is handed over as source and needs Python 3.9 and nothing else. It is run as the agent's user and trusted with
nothing: what it passes on is judged on the host.

    python3 -I -S -c SOURCE '{"command": "...", "environment": {"OPENAI_BASE_URL": "{url}/v1"}}'

A message is a length (4 bytes, big-endian) and so many bytes of JSON; bodies are base64.
"""

import base64
import http.server
import json
import os
import struct
import subprocess
import sys
import threading

_BODY_LIMIT = 16_000_000
_PASSED_ON = ("content-type", "anthropic-version", "anthropic-beta", "openai-beta")


class Host:
    """The line to the host. One request at a time."""

    def __init__(self, write_to: int, read_from: int) -> None:
        self._write_to = write_to
        self._read_from = read_from
        self._lock = threading.Lock()

    def ask(self, request: dict[str, object]) -> dict[str, object]:
        encoded = json.dumps(request).encode()
        data = memoryview(struct.pack(">I", len(encoded)) + encoded)
        with self._lock:
            while data:
                data = data[os.write(self._write_to, data) :]
            (length,) = struct.unpack(">I", self._exactly(4))
            answer: dict[str, object] = json.loads(self._exactly(length))
            return answer

    def _exactly(self, count: int) -> bytes:
        parts = []
        while count:
            data = os.read(self._read_from, count)
            if not data:
                raise EOFError("the host is gone")
            parts.append(data)
            count -= len(data)
        return b"".join(parts)


def handler(host: Host) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None: ...

        def do_GET(self) -> None:
            self._pass_on(b"")

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            if not 0 <= length <= _BODY_LIMIT:
                self.send_error(413)
                return
            self._pass_on(self.rfile.read(length))

        def _pass_on(self, body: bytes) -> None:
            answer = host.ask(
                {
                    "method": self.command,
                    "path": self.path,
                    "headers": {name: self.headers[name] for name in _PASSED_ON if name in self.headers},
                    "body": base64.b64encode(body).decode(),
                }
            )
            content = base64.b64decode(str(answer["body"]))
            self.send_response(int(str(answer["status"])))
            self.send_header("Content-Type", str(answer["content_type"]))
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    return Handler


def main() -> int:
    settings = json.loads(sys.argv[1])
    write_to, read_from = map(int, os.environ.pop("AGENT_RELAY").split())
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler(Host(write_to, read_from)))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    environment = {name: value.replace("{url}", url) for name, value in settings["environment"].items()}
    # The agent gets neither of the descriptors: they are not inheritable.
    for descriptor in (write_to, read_from):
        os.set_inheritable(descriptor, False)
    command = settings["command"].replace("{url}", url)
    return subprocess.call(["bash", "-c", command], env={**os.environ, **environment}, stdin=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main())

"""A running sandbox, of whichever backend: commands, files and the tree go through its guest."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from sandbox import guest, guest_disk, guest_streams
from sandbox.archives import check_archive
from sandbox.disk_bound import DiskBound, DiskExceeded
from sandbox.errors import SandboxError
from sandbox.guest_channel import Answer, GuestChannel, GuestGone, Relay
from sandbox.types import WORKSPACE, CommandResult, FileDigest, Limits

VENV = "/opt/venv"
"""Where every sandbox has its Python environment; read-only but during set-up."""
PRODUCTS = f"{VENV}/.acrouter-products.tar"
"""What a set-up wrote into the repository's tree (generated version files, compiled modules)."""
GRADLE = f"{VENV}/gradle"
"""What a set-up left of Gradle's home. Gradle writes into its home, so each sandbox gets a copy of its own."""
GRADLE_FILES = f"{VENV}/gradle-files"
"""What that home has links to: its large files, which nothing writes again."""
HOME = "/home/agent"
AGENT_UID = 1000
ENVIRONMENT: Mapping[str, str] = {
    "PATH": f"{VENV}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "VIRTUAL_ENV": VENV,
    "HOME": HOME,
    "USER": "agent",
    "LOGNAME": "agent",
    "LANG": "C.UTF-8",
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    # The tree belongs to the agent's user; our own commands run as root and are to be let in.
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.directory",
    "GIT_CONFIG_VALUE_0": "*",
    "GOMODCACHE": f"{VENV}/go",
    "CARGO_HOME": f"{VENV}/cargo",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_RETRIES": "0",  # there is no network: pip is to say so at once
}
_GRACE_S = 20.0
"""How much longer than a command's own time the guest may take to kill it and answer."""
_CHUNK = 1 << 20


def guest_arguments(limits: Limits, *, uid: int | None, rlimits: Mapping[str, int]) -> list[str]:
    """Return the arguments for `python3` that start the guest."""
    settings = {
        "uid": uid,
        "rlimits": {"RLIMIT_CORE": 0, "RLIMIT_FSIZE": limits.disk_mb << 20, **rlimits},
        "environment": dict(ENVIRONMENT),
        "workspace": WORKSPACE,
        "places": [WORKSPACE, HOME],
        "output_bytes": limits.output_bytes,
    }
    # -S: nothing of site-packages is needed, and looking there would take a third of the start.
    return ["-I", "-S", "-c", _source(), json.dumps(settings)]


@cache
def _source() -> str:
    """Return a program that makes modules of the guest's parts, without a file, and runs the guest."""
    texts = {
        module.__name__: Path(module.__file__ or "").read_text(encoding="utf-8")
        for module in (guest_streams, guest_disk, guest)
    }
    program = texts.pop(guest.__name__)
    parts = "".join(f"exec({text!r}, sys.modules[{name!r}].__dict__)\n" for name, text in texts.items())
    return (
        "import sys\n"
        f"for name in {('sandbox', *texts)!r}: sys.modules[name] = type(sys)(name)\n"
        f"{parts}"
        f"exec({program!r}, {{'__name__': '__main__'}})\n"
    )


class GuestSandbox:
    """Fulfils `sandbox.types.Sandbox`. `end` frees what the backend gave; it is called once."""

    def __init__(self, channel: GuestChannel, end: Callable[[], None]) -> None:
        self._channel = channel
        self._end: Callable[[], None] | None = end
        self._reported_gone = False

    def execute(
        self,
        command: str,
        *,
        timeout_s: float,
        trusted: bool = False,
        environment: Mapping[str, str] | None = None,
        bound: DiskBound | None = None,
    ) -> CommandResult:
        """Run `command` with bash in WORKSPACE. Whatever it leaves running is killed when it ends or its time is up.

        A command that takes the whole sandbox down (it used up all memory) ends with exit code 137; every later call
        raises SandboxError. A `bound` counts from the first command that has one.

        Raises:
            DiskExceeded: it wrote more to the disk than `bound` allows, and was killed.
        """
        if "\0" in command:
            return CommandResult("bash: a command cannot hold a NUL character\n", 126, False, 0.0)
        request = {
            "operation": "run",
            "command": command,
            "trusted": trusted,
            "timeout_s": timeout_s,
            "environment": dict(environment or {}),
            **({"bound": asdict(bound)} if bound is not None else {}),
        }
        return self._run(request, timeout_s)

    def converse(self, command: str, *, timeout_s: float, relay: Relay) -> CommandResult:
        """Run `command` like `execute`, as the agent's user, with a line to the host while it runs.

        The command finds two descriptors in AGENT_RELAY, one to write to and one to read from. Each piece that it
        writes is answered by one from `relay`.
        """
        request = {"operation": "run", "command": command, "trusted": False, "timeout_s": timeout_s, "relay": True}
        return self._run(request, timeout_s, relay=relay)

    def put_tree(self, archive: Path) -> None:
        check_archive(archive)
        # Files are as old as the sandbox: nothing that a set-up compiled is newer than a source that has changed since.
        # The tree's own files win over what a set-up left for it.
        command = (
            f"tar -xf - -C {WORKSPACE} --no-same-owner --touch && "
            f"if [ -f {PRODUCTS} ]; then tar -xf {PRODUCTS} -C {WORKSPACE} --skip-old-files; fi && "
            # One that does not fit is left out: the build then says what it lacks.
            f"if [ -d {GRADLE} ] && [ ! -e {HOME}/.gradle ]; then "
            f"cp -r {GRADLE} {HOME}/.gradle || rm -rf {HOME}/.gradle; fi"
        )
        size = archive.stat().st_size
        with archive.open("rb") as file:
            self._feed(command, iter(lambda: file.read(_CHUNK), b""), size, f"unpack {archive.name}")

    def put_file(self, path: str, content: bytes) -> None:
        """Write a file as the agent's user; a relative path is below WORKSPACE. A link in its place is replaced."""
        if "\0" in path:
            raise SandboxError("A path cannot hold a NUL character.")
        chunks = (content[start : start + _CHUNK] for start in range(0, len(content), _CHUNK))
        self._feed(
            # $1-like quoting is not there in `bash -c` without arguments: the path goes by the environment.
            'mkdir -p -- "$(dirname -- "$TARGET")" && rm -f -- "$TARGET" && cat > "$TARGET"',
            chunks,
            len(content),
            f"write {path}",
            {"TARGET": path if path.startswith("/") else f"./{path}"},
        )

    def read_file(self, path: str, *, limit: int = 5_000_000) -> bytes | None:
        request = {"operation": "read", "path": path, "limit": limit}
        answer = self._channel.call(request, timeout_s=_GRACE_S, limit=limit)
        return None if answer.header.get("missing") else answer.body

    def changed(self, files: Mapping[str, FileDigest]) -> Sequence[str]:
        request = {"operation": "changed", "files": files}
        answer = self._channel.call(request, timeout_s=_GRACE_S, limit=len(json.dumps([*files])))
        try:
            changed = set(json.loads(answer.body))
        except (ValueError, TypeError) as error:
            raise GuestGone("the sandbox answered nonsense") from error
        return [path for path in files if path in changed]

    def ending_with(self, then: Callable[[], None]) -> "GuestSandbox":
        """Have `then` called once after it has ended, and return itself."""
        end = self._end

        def both() -> None:
            try:
                if end is not None:
                    end()
            finally:
                then()

        self._end = both
        return self

    def close(self) -> None:
        end, self._end = self._end, None
        if end is None:
            return
        self._channel.close()
        end()

    def __enter__(self) -> "GuestSandbox":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _feed(
        self,
        command: str,
        body: Iterator[bytes],
        size: int,
        what: str,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        timeout_s = 60 + size / 5_000_000
        request = {
            "operation": "run",
            "command": command,
            "trusted": False,
            "timeout_s": timeout_s,
            "environment": dict(environment or {}),
        }
        result = self._run(request, timeout_s, body, size)
        if result.exit_code:
            raise SandboxError(f"Cannot {what} in the sandbox: {result.output.strip()[-500:]}")

    def _run(
        self,
        request: Mapping[str, Any],
        timeout_s: float,
        body: Iterable[bytes] = (),
        size: int = 0,
        relay: Relay | None = None,
    ) -> CommandResult:
        started = time.monotonic()
        try:
            answer = self._channel.call(
                request, timeout_s=timeout_s + _GRACE_S, body=body, body_bytes=size, relay=relay
            )
        except GuestGone as error:
            if self._end is None or self._reported_gone:
                raise
            self._reported_gone = True
            seconds = time.monotonic() - started
            return CommandResult(f"{error}: the command used more than it may.\n", 137, False, seconds)
        return _result(answer)


def _result(answer: Answer) -> CommandResult:
    header = answer.header
    if "error" in header:
        raise SandboxError(f"The sandbox {header['error']}")
    try:
        head, dropped = int(header["head"]), int(header["dropped"])
        code, seconds = int(header["exit_code"]), float(header["duration_s"])
        timed_out = bool(header["timed_out"])
        if "exceeded" in header:
            what, amount = header["exceeded"]
            raise DiskExceeded(str(what), int(amount))
    except (KeyError, TypeError, ValueError) as error:
        raise GuestGone("the sandbox answered nonsense") from error
    if not dropped:
        return CommandResult(_decode(answer.body), code, timed_out, seconds)
    gap = f"\n[... {dropped} bytes of output left out ...]\n"
    output = _decode(answer.body[:head]) + gap + _decode(answer.body[head:])
    return CommandResult(output, code, timed_out, seconds, truncated=True)


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "replace")

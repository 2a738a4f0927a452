"""Runs inside every sandbox, started by a backend: the only process there that talks to the host.

It needs Python 3.9 and nothing else, and is handed over as source (`python3 -I -c SOURCE SETTINGS`), so that any image
with a Python can be a sandbox. Requests come on its stdin, answers go to its stdout, one after another: a length
(4 bytes, big-endian), that many bytes of JSON, then `body` raw bytes. When stdin ends, the owner is gone: everything is
killed and the sandbox ends with it.

Whatever a command leaves running is killed when the command ends. That is one `kill(-1, SIGKILL)`, which needs no new
process and which a fork bomb cannot outrun; so this must be the only trusted process of its own pid namespace.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import resource
import select
import signal
import stat
import struct
import subprocess
import sys
import time

TYPE_CHECKING = False  # type checkers take it for typing's own, whose import would make every start slower
if TYPE_CHECKING:
    from typing import Any

_CHUNK = 1 << 16
_PIPE = 1 << 20
_INITS = {"docker-init", "tini", "catatonit"}


class OwnerGoneError(Exception):
    """The host closed our stdin."""


class Capture:
    """Keeps the first and the last `limit / 2` bytes of a stream of any length."""

    def __init__(self, limit: int) -> None:
        self.limit = max(limit // 2, 1)
        self.head = bytearray()
        self.tail = bytearray()
        self.dropped = 0
        self.timed_out = False

    def add(self, data: bytes) -> None:
        room = self.limit - len(self.head)
        if room > 0:
            self.head += data[:room]
            data = data[room:]
        self.tail += data
        # Cut only now and then: each cut copies the tail.
        if len(self.tail) > 2 * self.limit:
            self.cut()

    def cut(self) -> None:
        excess = len(self.tail) - self.limit
        if excess > 0:
            self.dropped += excess
            del self.tail[:excess]


def read_exactly(count: int) -> bytes:
    parts = []
    while count:
        data = os.read(0, min(count, _CHUNK))
        if not data:
            raise OwnerGoneError
        parts.append(data)
        count -= len(data)
    return b"".join(parts)


def answer(header: dict[str, Any], body: bytes = b"") -> None:
    encoded = json.dumps({**header, "body": len(body)}).encode()
    data = memoryview(struct.pack(">I", len(encoded)) + encoded + body)
    while data:
        data = data[os.write(1, data) :]


def kill_everything() -> None:
    """Kill every process of the sandbox but its init and this one, and wait until they are gone."""
    for _ in range(500):
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            return
        reap()
        time.sleep(0.002)


def reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def widen(pipe: int) -> None:
    """Make a pipe as wide as an unprivileged user may, so that fewer turns are taken; any other file stays as it is."""
    with contextlib.suppress(OSError):
        fcntl.fcntl(pipe, 1031, _PIPE)  # F_SETPIPE_SZ; Python names it since 3.10 only


class Feeder:
    """Hands `expected` bytes from the host on to a command's stdin; a command that wants no more of them is no error.

    It also notices that the host is gone: nothing but these bytes may come while a command runs.
    """

    def __init__(self, expected: int, pipe: int) -> None:
        self.expected = expected
        self.pipe = pipe  # -1: there is none, or nobody reads it
        self.pending = b""
        if pipe >= 0:
            os.set_blocking(pipe, False)
            widen(pipe)
            widen(0)

    def watch(self, poller: select.poll) -> None:
        poller.register(0, select.POLLIN)

    def move(self, poller: select.poll, descriptor: int) -> None:
        if descriptor == 0:
            data = os.read(0, min(self.expected, _PIPE) or 1)
            if not data or not self.expected:
                raise OwnerGoneError
            self.expected -= len(data)
            if self.pipe >= 0:
                self.pending = data
                poller.unregister(0)  # until the command has taken it
                poller.register(self.pipe, select.POLLOUT)
            return
        try:
            self.pending = self.pending[os.write(self.pipe, self.pending) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self.pending = b""
        if not self.pending:
            poller.unregister(self.pipe)
            poller.register(0, select.POLLIN)
            if not self.expected:
                self.close()

    def close(self) -> None:
        if self.pipe >= 0:
            os.close(self.pipe)
            self.pipe = -1


class Guest:
    def __init__(self, settings: dict[str, Any]) -> None:
        self.uid = settings["uid"]  # None: everything runs as the one user there is
        self.limits = settings["rlimits"]
        self.environment = settings["environment"]
        self.workspace = settings["workspace"]
        self.output_bytes = settings["output_bytes"]
        if self.uid is not None:
            for place in settings["places"]:
                os.chown(place, self.uid, self.uid)
                os.chmod(place, 0o755)  # noqa: PTH101, S103
        self.wakeup, notify = os.pipe()
        os.set_blocking(self.wakeup, False)
        os.set_blocking(notify, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(notify, warn_on_full_buffer=False)

    def become(self, trusted: bool) -> None:
        """Turn a fresh child into the user that runs the command."""
        for name, value in self.limits.items():
            number = getattr(resource, name)
            hard = resource.getrlimit(number)[1]
            allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
            if not (trusted and name == "RLIMIT_NPROC"):
                resource.setrlimit(number, (allowed, allowed))
        # When memory runs out, a command is to be killed and not this process.
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:  # noqa: PTH123
            score.write("1000")
        if self.uid is not None and not trusted:
            os.setgroups([])
            os.setgid(self.uid)
            os.setuid(self.uid)
        os.umask(0o022)

    def start(self, request: dict[str, Any], stdin: int, output: int) -> subprocess.Popen[bytes]:
        command = request["command"].encode("utf-8", "surrogateescape")
        argv: list[Any] = ["bash", "-c", command]
        keep: tuple[int, ...] = ()
        if len(command) > 100_000:  # Linux takes at most 128 KiB in one argument
            script = os.memfd_create("command", 0)
            with os.fdopen(os.dup(script), "wb") as file:
                file.write(command)
            os.lseek(script, 0, os.SEEK_SET)
            argv, keep = ["bash", f"/proc/self/fd/{script}"], (script,)
        trusted = bool(request["trusted"])
        try:
            return subprocess.Popen(
                argv,
                stdin=stdin,
                stdout=output,
                stderr=output,
                cwd=self.workspace,
                env={**self.environment, **request.get("environment", {})},
                preexec_fn=lambda: self.become(trusted),  # noqa: PLW1509  (this process has one thread)
                start_new_session=True,
                pass_fds=keep,
            )
        finally:
            for descriptor in keep:
                os.close(descriptor)

    def run(self, request: dict[str, Any]) -> None:
        started = time.monotonic()
        deadline = started + request["timeout_s"]
        to_feed = request["body"]
        output, output_end = os.pipe()
        os.set_blocking(output, False)
        stdin_end, feed = os.pipe() if to_feed else (os.open(os.devnull, os.O_RDONLY), -1)
        try:
            process = self.start(request, stdin_end, output_end)
        except (OSError, subprocess.SubprocessError) as error:
            kill_everything()
            read_exactly(to_feed)
            for descriptor in (output, output_end, stdin_end, feed):
                if descriptor >= 0:
                    os.close(descriptor)
            answer({"error": f"cannot start a command: {error}"})
            return
        os.close(output_end)
        os.close(stdin_end)
        capture = self.pump(process, output, Feeder(to_feed, feed), deadline)
        kill_everything()
        with contextlib.suppress(BlockingIOError):
            while data := os.read(output, _CHUNK):  # all writers are dead: this ends
                capture.add(data)
        os.close(output)
        capture.cut()
        code = 124 if capture.timed_out else process.wait()
        answer(
            {
                "exit_code": code if code >= 0 else 128 - code,
                "timed_out": capture.timed_out,
                "duration_s": time.monotonic() - started,
                "head": len(capture.head),
                "dropped": capture.dropped,
            },
            bytes(capture.head + capture.tail),
        )

    def pump(self, process: subprocess.Popen[bytes], output: int, feeder: Feeder, deadline: float) -> Capture:
        """Move bytes until the command itself ends, or kill it at its deadline (`capture.timed_out`)."""
        capture = Capture(self.output_bytes)
        killed = False
        poller = select.poll()
        for descriptor in (output, self.wakeup):
            poller.register(descriptor, select.POLLIN)
        feeder.watch(poller)
        # Keep taking what the host still sends, or the next request would start in the middle of it.
        while process.poll() is None or feeder.expected:
            left = deadline - time.monotonic()
            if left <= 0 and not killed:
                killed = True
                capture.timed_out = process.poll() is None
                kill_everything()
            for descriptor, _ in poller.poll(max(left, 0.05) * 1000):
                if descriptor == output:
                    data = os.read(output, _CHUNK)
                    capture.add(data)
                    if not data:
                        poller.unregister(output)
                elif descriptor == self.wakeup:
                    os.read(self.wakeup, _CHUNK)
                else:
                    feeder.move(poller, descriptor)
        feeder.close()
        return capture

    def read_file(self, request: dict[str, Any]) -> None:
        try:
            descriptor = self.open_without_links(request["path"])
        except OSError:
            answer({"missing": True})
            return
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                answer({"missing": True})
                return
            with os.fdopen(os.dup(descriptor), "rb") as file:
                data = file.read(request["limit"])
        finally:
            os.close(descriptor)
        answer({"missing": False}, data)

    def open_without_links(self, path: str) -> int:
        """Open a path step by step: a link anywhere on it is an error, a FIFO does not block."""
        folder = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
        parts = [part for part in os.path.join(self.workspace, path).split("/") if part not in ("", ".")]  # noqa: PTH118
        try:
            for part in parts[:-1]:
                deeper = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
                os.close(folder)
                folder = deeper
            return os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY, dir_fd=folder)
        finally:
            os.close(folder)

    def serve(self) -> None:
        answer({"ready": True})
        while True:
            (length,) = struct.unpack(">I", read_exactly(4))
            request = json.loads(read_exactly(length))
            if request["operation"] == "run":
                self.run(request)
            else:
                self.read_file(request)


def main() -> None:
    with open("/proc/1/comm") as file:  # noqa: PTH123
        init = file.read().strip()
    # Either a small init started it, or it is the namespace's first process itself.
    if os.getpid() != 1 and (init not in _INITS or os.getppid() != 1):
        sys.exit("acrouter's guest runs only as the first process of a sandbox: it kills every process it can see.")
    if os.geteuid() != 0:
        import ctypes

        # Nobody of the same user may trace this process or open its descriptors (PR_SET_DUMPABLE = 4).
        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
    guest = Guest(json.loads(sys.argv[1]))
    try:
        guest.serve()
    except OwnerGoneError:
        kill_everything()


if __name__ == "__main__":
    main()

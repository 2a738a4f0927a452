"""Runs inside every sandbox, started by a backend: the only process there that talks to the host.

It needs Python 3.9 and nothing else, and is handed over as source together with `sandbox.guest_streams` and
`sandbox.guest_disk` (`python3 -I -c SOURCE SETTINGS`), so that any image with a Python can be a sandbox. Requests come
on its stdin, answers go to its stdout, one after another: a length (4 bytes, big-endian), that many bytes of JSON, then
`body` raw bytes.
When stdin ends, the owner is gone: everything is killed and the sandbox ends with it.

Whatever a command leaves running is killed when the command ends. That is one `kill(-1, SIGKILL)`, which needs no new
process and which a fork bomb cannot outrun; so this must be the only trusted process of its own pid namespace.
"""

from __future__ import annotations

import contextlib
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

from sandbox.guest_disk import DiskWatch
from sandbox.guest_streams import CHUNK, Capture, Feeder, OwnerGoneError, Relay, answer, read_exactly

TYPE_CHECKING = False  # type checkers take it for typing's own, whose import would make every start slower
if TYPE_CHECKING:
    from typing import Any

_INITS = {"docker-init", "tini", "catatonit"}


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


class Guest:
    def __init__(self, settings: dict[str, Any]) -> None:
        self.uid = settings["uid"]  # None: everything runs as the one user there is
        self.limits = settings["rlimits"]
        self.environment = settings["environment"]
        self.workspace = settings["workspace"]
        self.output_bytes = settings["output_bytes"]
        self.watch: DiskWatch | None = None
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

    def start(
        self, request: dict[str, Any], stdin: int, output: int, relay: Relay | None = None
    ) -> subprocess.Popen[bytes]:
        command = request["command"].encode("utf-8", "surrogateescape")
        argv: list[Any] = ["bash", "-c", command]
        keep: tuple[int, ...] = ()
        if len(command) > 100_000:  # Linux takes at most 128 KiB in one argument
            script = os.memfd_create("command", 0)
            with os.fdopen(os.dup(script), "wb") as file:
                file.write(command)
            os.lseek(script, 0, os.SEEK_SET)
            argv, keep = ["bash", f"/proc/self/fd/{script}"], (script,)
        environment = {**self.environment, **request.get("environment", {})}
        ends: tuple[int, ...] = ()
        if relay:
            ends = (relay.command_writes, relay.command_reads)
            environment["AGENT_RELAY"] = f"{relay.command_writes} {relay.command_reads}"
        trusted = bool(request["trusted"])
        try:
            return subprocess.Popen(
                argv,
                stdin=stdin,
                stdout=output,
                stderr=output,
                cwd=self.workspace,
                env=environment,
                preexec_fn=lambda: self.become(trusted),  # noqa: PLW1509  (this process has one thread)
                start_new_session=True,
                pass_fds=(*keep, *ends),
            )
        finally:
            for descriptor in keep:
                os.close(descriptor)

    def run(self, request: dict[str, Any]) -> None:
        started = time.monotonic()
        deadline = started + request["timeout_s"]
        to_feed = request["body"]
        watch = self.watch_of(request)
        output, output_end = os.pipe()
        os.set_blocking(output, False)
        stdin_end, feed = os.pipe() if to_feed else (os.open(os.devnull, os.O_RDONLY), -1)
        relay = Relay() if request.get("relay") else None
        try:
            process = self.start(request, stdin_end, output_end, relay)
        except (OSError, subprocess.SubprocessError) as error:
            kill_everything()
            read_exactly(to_feed)
            for descriptor in (output, output_end, stdin_end, feed):
                if descriptor >= 0:
                    os.close(descriptor)
            if relay:
                relay.started()
                relay.close()
            answer({"error": f"cannot start a command: {error}"})
            return
        os.close(output_end)
        os.close(stdin_end)
        if relay:
            relay.started()
        capture = self.pump(process, output, relay or Feeder(to_feed, feed), deadline, watch)
        kill_everything()
        exceeded = watch and (capture.exceeded or watch.exceeded())
        with contextlib.suppress(BlockingIOError):
            while data := os.read(output, CHUNK):  # all writers are dead: this ends
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
                **({"exceeded": exceeded} if exceeded else {}),
            },
            bytes(capture.head + capture.tail),
        )

    def watch_of(self, request: dict[str, Any]) -> DiskWatch | None:
        """Return the watch over what the command may write; it counts from the first command that is bounded."""
        if "bound" not in request:
            return None
        if self.watch is None:
            self.watch = DiskWatch(request["bound"])
        return self.watch

    def pump(
        self,
        process: subprocess.Popen[bytes],
        output: int,
        feeder: Feeder | Relay,
        deadline: float,
        watch: DiskWatch | None,
    ) -> Capture:
        """Move bytes until the command itself ends, or kill it at its deadline (`capture.timed_out`) or when it has
        written too much (`capture.exceeded`).
        """
        capture = Capture(self.output_bytes)
        killed = False
        poller = select.poll()
        for descriptor in (output, self.wakeup):
            poller.register(descriptor, select.POLLIN)
        feeder.watch(poller)
        # Keep taking what the host still sends, or the next request would start in the middle of it.
        while process.poll() is None or feeder.expected:
            left = deadline - time.monotonic()
            if (left <= 0 or feeder.ended) and not killed:
                killed = True
                capture.timed_out = process.poll() is None and not feeder.ended
                kill_everything()
            if watch and not killed:
                capture.exceeded = watch.look()
                if capture.exceeded:
                    killed = True
                    kill_everything()
                left = min(left, watch.GLANCE_S)
            for descriptor, _ in poller.poll(max(left, 0.05) * 1000):
                if descriptor == output:
                    data = os.read(output, CHUNK)
                    capture.add(data)
                    if not data:
                        poller.unregister(output)
                elif descriptor == self.wakeup:
                    os.read(self.wakeup, CHUNK)
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

    def changed(self, request: dict[str, Any]) -> None:
        changed = [path for path, digest in request["files"].items() if not self.holds(path, *digest)]
        answer({}, json.dumps(changed).encode())

    def holds(self, path: str, size: int, sha256: str) -> bool:
        import hashlib  # most sandboxes are never asked

        try:
            with os.fdopen(self.open_without_links(path), "rb") as file:
                found = os.fstat(file.fileno())
                # One of the size that is expected is read in the time that is expected.
                same_kind = stat.S_ISREG(found.st_mode) and found.st_size == size
                return same_kind and hashlib.sha256(file.read(size)).hexdigest() == sha256
        except OSError:
            return False

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
            elif request["operation"] == "relay":  # to a command that has ended meanwhile
                read_exactly(request["body"])
            elif request["operation"] == "changed":
                self.changed(request)
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

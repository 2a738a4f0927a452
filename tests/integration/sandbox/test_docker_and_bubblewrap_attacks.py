"""What hostile code tries from inside, against each backend. The sandbox must still answer afterwards."""

import contextlib
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.types import Backend, Limits, Sandbox, SandboxSpec
from tests.support.services import wait_until

LOOK_EVERYWHERE = "cat /proc/*/environ /proc/*/cmdline 2>/dev/null; env"


@pytest.fixture(autouse=True)
def _still_answers(sandbox: Sandbox) -> Iterator[None]:
    yield
    assert sandbox.execute("echo alive", timeout_s=10).output == "alive\n"


def processes(sandbox: Sandbox) -> int:
    """Count the commands' processes; the guest is a `python3`."""
    command = "cat /proc/[0-9]*/comm 2>/dev/null | grep -cxE 'sleep|python|nohup|setsid'"
    return int(sandbox.execute(command, timeout_s=10, trusted=True).output)


def test_the_hosts_environment_is_not_there(backend: Backend, sandbox: Sandbox, secret_environment: str) -> None:
    assert os.environ["ACROUTER_GITHUB_WEBHOOK_SECRET"] == secret_environment
    opened = backend.open(SandboxSpec(backend.ensure_base(), {"task": "1", "owner": "tests"}, Limits(disk_mb=64)))
    try:
        for trusted in (False, True):
            found = opened.execute(LOOK_EVERYWHERE, timeout_s=10, trusted=trusted).output
            assert "canary-" not in found
            assert "ACROUTER_" not in found
            assert str(Path.cwd()) not in found
    finally:
        opened.close()


def test_the_hosts_files_are_not_there(sandbox: Sandbox, secret_file: Path) -> None:
    command = f"cat {secret_file}; ls -A /root /home /var/run/docker.sock /run/docker.sock {Path.cwd()}"
    assert "canary" not in sandbox.execute(command, timeout_s=10, trusted=True).output
    assert sandbox.execute("ls /var/run/docker.sock /run/docker.sock", timeout_s=10).exit_code != 0
    sockets = sandbox.execute("find / -xdev -type s 2>/dev/null", timeout_s=20, trusted=True)
    assert sockets.output == ""


def test_no_address_can_be_reached(sandbox: Sandbox) -> None:
    with socket.create_server(("0.0.0.0", 0)) as server:  # noqa: S104
        port = server.getsockname()[1]
        script = f"""
import socket
for address in [("127.0.0.1", {port}), ("172.17.0.1", {port}), ("169.254.169.254", 80), ("1.1.1.1", 53),
                ("::1", {port}), ("2606:4700:4700::1111", 53)]:
    try:
        socket.create_connection(address, timeout=2)
        print("reached", address)
    except OSError:
        pass
try:
    socket.getaddrinfo("pypi.org", 443)
    print("resolved")
except OSError:
    pass
print("done")
"""
        sandbox.put_file("/tmp/reach.py", script.encode())
        assert sandbox.execute("python /tmp/reach.py", timeout_s=60).output == "done\n"


def test_nothing_but_its_own_folders_can_be_written(sandbox: Sandbox) -> None:
    command = "for f in / /usr /etc /opt/venv /opt/venv/bin /proc/sys/kernel /sys; do touch $f/x && echo wrote $f; done"
    assert "wrote" not in sandbox.execute(command, timeout_s=10).output
    assert "wrote" not in sandbox.execute("touch /usr/x /opt/venv/x && echo wrote", timeout_s=10, trusted=True).output


def test_privileges_cannot_be_gained(sandbox: Sandbox) -> None:
    status = sandbox.execute("cat /proc/self/status", timeout_s=10).output
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert int(fields["CapEff"], 16) == int(fields["CapPrm"], 16) == 0
    assert fields["NoNewPrivs"] == "1"
    tries = "su -c id; mount -t tmpfs x /mnt; chroot / id; kill -9 1; mknod /tmp/disk b 8 0 && echo made"
    result = sandbox.execute(tries, timeout_s=10)
    assert "uid=0" not in result.output
    assert "made" not in result.output


def test_the_guest_cannot_be_spied_on(backend: Backend, sandbox: Sandbox) -> None:
    script = "for p in /proc/[0-9]*; do ls $p/fd 2>/dev/null | grep -q . && tr '\\0' ' ' < $p/cmdline; done"
    assert "every sandbox" not in sandbox.execute(script, timeout_s=10).output
    assert "every sandbox" in sandbox.execute(script, timeout_s=10, trusted=True).output, "what it says is known"


def test_a_command_past_its_time_dies_with_all_its_children(sandbox: Sandbox) -> None:
    started = time.monotonic()
    escape = "import os, time; os.fork() or os.setsid(); time.sleep(1000)"
    command = f"echo begun; (setsid sleep 1000 &); trap '' TERM INT HUP; python -c '{escape}'; echo never"
    result = sandbox.execute(command, timeout_s=1)
    assert (result.timed_out, result.output) == (True, "begun\n")
    assert time.monotonic() - started < 15
    assert processes(sandbox) == 0


def test_what_a_command_leaves_running_ends_with_it(sandbox: Sandbox) -> None:
    result = sandbox.execute("nohup setsid sleep 1000 & (sleep 1000 & disown); echo done", timeout_s=10)
    assert (result.output, result.exit_code) == ("done\n", 0)
    assert processes(sandbox) == 0


def test_a_fork_bomb_is_bounded(sandbox: Sandbox) -> None:
    script = "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass\n"
    sandbox.put_file("/tmp/bomb.py", script.encode())
    assert sandbox.execute("python /tmp/bomb.py", timeout_s=2).timed_out
    assert processes(sandbox) == 0


def test_memory_is_bounded(sandbox: Sandbox) -> None:
    result = sandbox.execute("python -c 'x = bytearray(2_000_000_000); print(len(x))'", timeout_s=60)
    assert result.exit_code != 0
    assert "2000000000" not in result.output


def test_the_disk_is_bounded_and_can_be_emptied_again(sandbox: Sandbox) -> None:
    command = (
        "for d in /workspace /tmp ~ /dev/shm; do head -c 500000000 /dev/zero > $d/big; done; du -cm /workspace /tmp ~"
    )
    used = sandbox.execute(command, timeout_s=60).output.splitlines()[-1]
    assert int(used.split()[0]) <= 64
    assert sandbox.execute("rm /workspace/big /tmp/big ~/big /dev/shm/big; echo x > y", timeout_s=10).exit_code == 0


def test_a_gigabyte_of_output_is_cut_while_it_streams(sandbox: Sandbox) -> None:
    result = sandbox.execute("echo first; yes | head -c 1000000000; echo last", timeout_s=100)
    assert result.truncated
    assert len(result.output) < 110_000
    assert result.output.startswith("first\n")
    assert result.output.endswith("last\n")
    assert "bytes of output left out" in result.output


def test_a_command_that_kills_all_it_can_harms_only_itself(fresh: Sandbox, backend: Backend) -> None:
    result = fresh.execute("sh -c 'kill -9 -1'; sleep 5", timeout_s=10)
    assert result.exit_code == 137
    assert not result.timed_out


OWNER_THAT_DIES = """
import os, sys
from pathlib import Path
from sandbox.docker_backend import DockerBackend
from sandbox.bubblewrap_backend import BubblewrapBackend
from sandbox.types import Limits, SandboxSpec
kind, instance, folder, seconds = sys.argv[1:]
limits = Limits(disk_mb=64)
backend = DockerBackend("acrouter/base:1", limits, instance=instance) if kind == "docker" else BubblewrapBackend(
    Path(folder), limits)
sandbox = backend.open(SandboxSpec(backend.ensure_base(), {"task": "dead", "owner": "dead"}, limits))
print("open", flush=True)
sandbox.execute(f"sleep {seconds}", timeout_s=1000)
"""


def sleeps(seconds: str) -> bool:
    """Whether a process sleeps so long: those of sandboxes are seen from the host, whoever's they are."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended by now
            if path.read_bytes() == f"sleep\0{seconds}\0".encode():
                return True
    return False


def test_a_sandbox_ends_with_its_owner(backend: Backend, sandbox: Sandbox) -> None:
    instance = getattr(backend, "_instance", "")
    folder = getattr(backend, "_folder", Path("/")).parent
    seconds = f"{secrets.randbelow(10**9) + 10**9}"  # nobody else sleeps as long
    arguments = [backend.name, instance, str(folder), seconds]
    with subprocess.Popen(
        [sys.executable, "-c", OWNER_THAT_DIES, *arguments], stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "open\n"
        wait_until(lambda: sleeps(seconds), what="the command")
        owner.kill()
    try:
        wait_until(lambda: not sleeps(seconds), timeout_s=20, what="the sandbox's end")
    finally:
        backend.remove_task("dead")

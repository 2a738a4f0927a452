"""Attacks on the machine's resources, on other tasks and on the verifier, against each backend."""

import uuid
from collections.abc import Iterator

import pytest

from sandbox.results import TestCommand
from sandbox.testing import run_tests
from sandbox.types import Backend, Limits, Sandbox, SandboxSpec

SMALL = Limits(memory_mb=256, pids=64, disk_mb=64, output_bytes=100_000)
OWNER = {"task": "1", "owner": "tests"}


@pytest.fixture(autouse=True)
def _still_answers(sandbox: Sandbox) -> Iterator[None]:
    yield
    assert sandbox.execute("echo alive", timeout_s=10).output == "alive\n"


def test_another_tasks_workspace_is_not_there(backend: Backend, sandbox: Sandbox) -> None:
    canary = f"canary-{uuid.uuid4().hex}"
    other = backend.open(SandboxSpec(backend.ensure_base(), {"task": "2", "owner": "tests"}, SMALL))
    try:
        other.put_file("secret.txt", canary.encode())
        other.execute(f"echo {canary} | tee /tmp/x ~/x /dev/shm/x", timeout_s=10)
        search = sandbox.execute(f"grep -rsl {canary} /workspace /tmp /home /dev/shm", timeout_s=60, trusted=True)
        assert not search.timed_out
        assert search.output == ""
        others = other.execute("echo $$; ls /proc | grep -c '^[0-9]'", timeout_s=10).output
        assert int(others.split()[1]) < 10
    finally:
        other.close()


def test_inodes_are_bounded_and_come_back(sandbox: Sandbox, backend: Backend) -> None:
    script = (
        "import os\nn = 0\ntry:\n    while n < 60_000:\n        open(f'{n}', 'w').close()\n        n += 1\n"
        "except OSError:\n    pass\n"
    )
    sandbox.put_file("/tmp/fill.py", script.encode())
    sandbox.execute("mkdir -p ~/many && cd ~/many && python /tmp/fill.py", timeout_s=60)
    counted = int(sandbox.execute("ls -f ~/many | wc -l", timeout_s=30).output)
    if backend.name == "docker":
        assert counted < 51_000
    assert sandbox.execute("rm -rf ~/many && touch ~/again", timeout_s=60).exit_code == 0


def test_a_command_leaves_no_log_on_the_host(backend: Backend, sandbox: Sandbox) -> None:
    if backend.name == "docker":
        import docker

        api = docker.from_env().api
        label = f"acrouter.instance={backend._instance}"  # type: ignore[attr-defined]
        ours = api.containers(filters={"label": label})
        assert ours
        for one in ours:
            assert api.inspect_container(one["Id"])["HostConfig"]["LogConfig"]["Type"] == "none"
    assert sandbox.execute("echo x > /proc/1/fd/1; echo y > /dev/console; echo done", timeout_s=10).output.endswith(
        "done\n"
    )


def test_a_forged_result_file_and_an_early_exit_are_not_believed(fresh: Sandbox) -> None:
    forger = (
        "import atexit, os, re\n"
        "path = re.search(r'--junitxml=(\\S+)', os.environ['PYTEST_ADDOPTS'])[1]\n"
        'FORGED = \'<testsuite><testcase classname="test_a" name="test_a" file="test_a.py"/></testsuite>\'\n'
        "atexit.register(lambda: open(path, 'w').write(FORGED))\n"
        "def test_a(): assert False\n"
    )
    command = TestCommand("python3 -m pytest", "pytest", "test")
    fresh.put_file("test_a.py", forger.encode())
    assert "do not agree" in run_tests(fresh, command, timeout_s=30).note
    fresh.put_file("test_a.py", b"import os\ndef test_a(): os._exit(0)\n")
    early = run_tests(fresh, command, timeout_s=30)
    assert (early.note, early.passed) == ("pytest left no results.", 0)


def test_a_process_that_tests_leave_running_keeps_no_run_from_ending(fresh: Sandbox) -> None:
    server = (
        "import subprocess, unittest\n"
        "class Case(unittest.TestCase):\n"
        "    def test_a(self): subprocess.Popen(['sleep', '60'])\n"
    )
    fresh.put_file("test_a.py", server.encode())
    report = run_tests(fresh, TestCommand("python3 -m unittest -v", "unittest", "test"), timeout_s=30)
    assert (report.timed_out, report.note, report.passed) == (False, "", 1)

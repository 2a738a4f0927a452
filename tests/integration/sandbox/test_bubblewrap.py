"""What bubblewrap's sandboxes do beside other processes that share their folder, and in a process with much open."""

import os
import resource
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from sandbox.bubblewrap_backend import BubblewrapBackend
from sandbox.types import Limits, SandboxSpec

pytestmark = pytest.mark.bubblewrap
LIMITS = Limits(memory_mb=256, pids=64, disk_mb=64)


def spec(backend: BubblewrapBackend, **labels: str) -> SandboxSpec:
    return SandboxSpec(backend.ensure_base(), labels, LIMITS)


@pytest.fixture
def much_open() -> Iterator[None]:
    """More descriptors than select(2) knows, as a server with many connections has."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    with ExitStack() as stack:
        for _ in range(1100):
            stack.callback(os.close, os.open(os.devnull, os.O_RDONLY))
        yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("much_open")
def test_a_process_with_more_than_a_thousand_files_open_has_sandboxes_too(
    bubblewrap_backend: BubblewrapBackend,
) -> None:
    with bubblewrap_backend.open(spec(bubblewrap_backend, task="1", owner="w")) as sandbox:
        sandbox.put_file("large.bin", bytes(3_000_000))
        assert sandbox.execute("wc -c < large.bin", timeout_s=10).output == "3000000\n"


def test_a_sandbox_that_ends_while_leftovers_are_looked_for_is_no_error(
    bubblewrap_backend: BubblewrapBackend,
) -> None:
    sandbox = bubblewrap_backend.open(spec(bubblewrap_backend, task="1", owner="w"))

    def its_task_ends() -> frozenset[str]:
        sandbox.close()
        return frozenset()

    assert bubblewrap_backend.remove_leftovers(its_task_ends) == 0


def test_what_another_process_runs_for_no_task_is_no_leftover(bubblewrap_backend: BubblewrapBackend) -> None:
    """`acrouter doctor` tries a sandbox, and whoever starts first makes the base environment in one."""
    with bubblewrap_backend.open(spec(bubblewrap_backend)) as sandbox:
        assert bubblewrap_backend.remove_leftovers(frozenset) == 0
        assert sandbox.execute("echo alive", timeout_s=10).output == "alive\n"


def test_what_is_shown_of_the_machines_settings_can_be_read(bubblewrap_backend: BubblewrapBackend) -> None:
    """OpenSSL's, without which node does not start, lie in a folder that bubblewrap makes."""
    there = [path for path in ("/etc/ssl/openssl.cnf", "/etc/ssl/certs/.", "/etc/localtime") if os.path.exists(path)]  # noqa: PTH110
    with bubblewrap_backend.open(spec(bubblewrap_backend, task="1", owner="w")) as sandbox:
        found = sandbox.execute(f"for path in {' '.join(there)}; do test -r $path || echo $path; done", timeout_s=10)
    assert there
    assert found.output == ""

"""What processes take, by this very one and those that it starts."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import processes
from bench.errors import BenchError
from bench.processes import require_proc, use, use_with_children

HOLDS_MEMORY = "import sys; held = b'x' * 50_000_000; print(flush=True); sys.stdin.read()"


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A process that holds 50 MB until its input ends."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS_MEMORY], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        process.stdout.readline()
        yield process


def test_this_process_is_told_as_it_is(tmp_path: Path) -> None:
    require_proc()
    before = use(os.getpid())
    assert before.resident_kb > 10_000
    assert before.threads >= threading.active_count()
    held = [(tmp_path / "file").open("w") for _ in range(5)]
    assert use(os.getpid()).descriptors == before.descriptors + 5
    for file in held:
        file.close()


def test_what_a_process_has_started_counts_whichever_thread_did(child: subprocess.Popen[bytes]) -> None:
    own, below = use(os.getpid()), use(child.pid)
    assert below.resident_kb > 50_000_000 / 1024
    whole = use_with_children(os.getpid())
    assert whole.resident_kb > own.resident_kb + 40_000
    assert whole.threads > own.threads
    # A thread of this process starts another, and goes on.
    started: list[subprocess.Popen[bytes]] = []
    done = threading.Event()

    def start() -> None:
        started.append(subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE))
        done.wait(60)

    thread = threading.Thread(target=start)
    thread.start()
    while not started:
        thread.join(0.01)
    assert use_with_children(os.getpid()).threads > whole.threads
    done.set()
    thread.join()
    with started[0] as process:
        process.communicate(b"\n")


def test_a_process_that_is_not_there_is_an_error(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.wait()
    with pytest.raises(BenchError, match=f"There is no process {child.pid}"):
        use_with_children(child.pid)


def test_one_that_has_ended_and_was_not_waited_for_has_no_memory(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert use_with_children(child.pid).resident_kb == 0


def test_where_there_is_no_proc_that_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(processes, "_PROC", tmp_path)
    with pytest.raises(BenchError, match="which only Linux has"):
        require_proc()

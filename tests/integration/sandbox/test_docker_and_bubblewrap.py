"""What every sandbox does, whichever backend it comes from."""

import hashlib
import tarfile
import threading
import time
from pathlib import Path

import pytest

from sandbox.errors import CheckoutError, SandboxError
from sandbox.types import WORKSPACE, Backend, FileDigest, Limits, Sandbox, SandboxSpec
from tests.support.repositories import make_archive

SMALL = Limits(memory_mb=256, pids=64, disk_mb=64, output_bytes=100_000)


def test_a_command_runs_as_an_ordinary_user_in_the_workspace(sandbox: Sandbox) -> None:
    result = sandbox.execute('pwd; test "$(id -u)" != 0 && echo ordinary; exit 3', timeout_s=10)
    assert (result.output, result.exit_code, result.timed_out) == (f"{WORKSPACE}\nordinary\n", 3, False)


def test_output_keeps_its_order_and_strange_bytes_are_replaced(sandbox: Sandbox) -> None:
    result = sandbox.execute("echo out; echo err >&2; printf 'caf\\xe9 \\xff\\n'", timeout_s=10)
    assert result.output == "out\nerr\ncaf\ufffd \ufffd\n"


def test_a_command_has_no_input_and_ends_with_a_signals_code(sandbox: Sandbox) -> None:
    assert sandbox.execute("cat; kill -TERM $$", timeout_s=10).exit_code == 128 + 15


def test_our_own_commands_see_what_the_agent_hid(sandbox: Sandbox) -> None:
    sandbox.execute("umask 077; echo hidden > hidden.txt; mkdir -m 700 closed", timeout_s=10)
    trusted = sandbox.execute("cat hidden.txt; ls -d closed/.; git init -q .", timeout_s=10, trusted=True)
    assert trusted.output == "hidden\nclosed/.\n"
    assert sandbox.execute("rm -rf .git hidden.txt closed", timeout_s=10, trusted=True).exit_code == 0


def test_pytest_and_git_are_there(sandbox: Sandbox) -> None:
    result = sandbox.execute("python -m pytest --version && git --version && which python", timeout_s=30)
    assert result.exit_code == 0
    assert result.output.splitlines()[-1] == "/opt/venv/bin/python"


def test_a_long_command_is_no_problem(sandbox: Sandbox) -> None:
    text = "x" * 300_000
    assert sandbox.execute(f"cat > long.txt <<'END'\n{text}\nEND\nwc -c < long.txt", timeout_s=10).output == "300001\n"
    assert "NUL" in sandbox.execute("echo \0", timeout_s=10).output


def test_files_go_in_and_come_out(sandbox: Sandbox) -> None:
    content = bytes(range(256)) * 1000
    sandbox.put_file("a folder/it's $(a) file", content)
    assert sandbox.read_file("a folder/it's $(a) file") == content
    assert sandbox.read_file(f"{WORKSPACE}/a folder/it's $(a) file", limit=10) == content[:10]
    assert sandbox.read_file("nowhere") is None
    assert sandbox.read_file("a folder") is None


def test_links_and_pipes_are_not_read(sandbox: Sandbox) -> None:
    sandbox.execute("ln -s /etc/passwd link; ln -s /etc etc; mkfifo pipe", timeout_s=10)
    assert [sandbox.read_file(name) for name in ("link", "etc/passwd", "pipe", "/dev/zero")] == [None] * 4


def test_files_that_hold_something_else_are_named(fresh: Sandbox) -> None:
    names = ["kept", "a folder/it's $(a) file", "other", "longer", "gone", "a link", "pipe", "odd\udcff"]
    for name in names:
        fresh.put_file(name, b"as it was\n")
    files = {name: FileDigest(10, hashlib.sha256(b"as it was\n").hexdigest()) for name in names}
    assert fresh.changed(files) == []

    fresh.execute(
        "echo something > other; echo more >> longer; rm gone 'a link' pipe; mkfifo pipe; ln -s kept 'a link'; "
        "echo more >> odd*",
        timeout_s=10,
    )
    assert fresh.changed(files) == ["other", "longer", "gone", "a link", "pipe", "odd\udcff"]


def test_a_file_replaces_a_link_instead_of_following_it(sandbox: Sandbox) -> None:
    sandbox.execute("echo kept > target; ln -s target replaced", timeout_s=10)
    sandbox.put_file("replaced", b"new")
    assert (sandbox.read_file("target"), sandbox.read_file("replaced")) == (b"kept\n", b"new")


def test_a_tree_is_unpacked_for_the_agent(fresh: Sandbox, tmp_path: Path) -> None:
    archive = make_archive(tmp_path / "tree.tar", {"a.txt": "a\n", "sub/b.txt": "b" * 3_000_000})
    fresh.put_tree(archive)
    result = fresh.execute("echo more >> a.txt && cat a.txt && wc -c < sub/b.txt", timeout_s=10)
    assert result.output == "a\nmore\n3000000\n"


def test_a_tree_that_does_not_fit_is_an_error_and_the_sandbox_lives(fresh: Sandbox, tmp_path: Path) -> None:
    archive = make_archive(tmp_path / "tree.tar", {"big.bin": "x" * 70_000_000})
    with pytest.raises(SandboxError, match=r"Wrote only|No space left"):
        fresh.put_tree(archive)
    assert fresh.execute("echo alive", timeout_s=10).output == "alive\n"


def test_a_tree_that_escapes_never_gets_in(sandbox: Sandbox, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "evil.tar", "w") as tar:
        tar.addfile(tarfile.TarInfo("../home/agent/evil"))
    with pytest.raises(CheckoutError, match="outside of the tree"):
        sandbox.put_tree(tmp_path / "evil.tar")


def test_closing_twice_is_fine_and_a_closed_sandbox_says_so(backend: Backend) -> None:
    opened = backend.open(SandboxSpec(backend.ensure_base(), {"task": "1", "owner": "tests"}, SMALL))
    opened.close()
    opened.close()
    with pytest.raises(SandboxError, match="ended"):
        opened.execute("true", timeout_s=5)


def test_closing_ends_a_command_that_runs(backend: Backend) -> None:
    opened = backend.open(SandboxSpec(backend.ensure_base(), {"task": "1", "owner": "tests"}, SMALL))
    timer = threading.Timer(0.5, opened.close)
    timer.start()
    started = time.monotonic()
    with pytest.raises(SandboxError):
        opened.execute("sleep 60", timeout_s=60)
    assert time.monotonic() - started < 30
    timer.join()


def test_an_unknown_image_is_named(backend: Backend) -> None:
    with pytest.raises(SandboxError, match="nowhere"):
        backend.open(SandboxSpec("nowhere", {"task": "1", "owner": "tests"}, SMALL))


def test_only_what_no_task_holds_is_removed(backend: Backend) -> None:
    image = backend.ensure_base()
    opened = {task: backend.open(SandboxSpec(image, {"task": task, "owner": "w"}, SMALL)) for task in ("7", "8", "9")}
    try:
        assert backend.remove_task("7") == 1
        assert backend.remove_leftovers(lambda: frozenset({"8", "1"})) == 1
        assert backend.remove_leftovers(lambda: frozenset({"8", "1"})) == 0
        assert opened["8"].execute("echo alive", timeout_s=10).output == "alive\n"
        # The one that goes down under a command answers for it once, then says that it is gone.
        assert opened["9"].execute("true", timeout_s=10).exit_code == 137
        with pytest.raises(SandboxError):
            opened["9"].execute("true", timeout_s=10)
    finally:
        for one in opened.values():
            one.close()

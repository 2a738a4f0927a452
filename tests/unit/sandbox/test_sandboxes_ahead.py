"""Sandboxes wait before they are asked for, each is given out once, and none stays behind."""

import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from sandbox.ahead import SandboxesAhead
from sandbox.errors import SandboxError
from sandbox.types import CommandResult, FileDigest, SandboxSpec

SPEC = SandboxSpec("image", {"task": "1", "owner": "w"})


class PlainSandbox:
    def __init__(self, number: int) -> None:
        self.number = number
        self.closed = threading.Event()
        self.dead = False

    def execute(self, command: str, *, timeout_s: float, trusted: bool = False) -> CommandResult:
        return CommandResult(f"{self.number}: {command}", 0, False, timeout_s + trusted)

    def put_tree(self, archive: Path) -> None:
        raise NotImplementedError

    def put_file(self, path: str, content: bytes) -> None:
        raise NotImplementedError

    def read_file(self, path: str, *, limit: int = 5_000_000) -> bytes | None:
        if self.dead:
            raise SandboxError(f"{path}: it is gone after {limit}")
        return None

    def changed(self, files: Mapping[str, FileDigest]) -> list[str]:
        raise NotImplementedError

    def close(self) -> None:
        self.closed.set()


class PlainOpener:
    """Opens sandboxes that are numbered from 1; `broken` says which of them fail to start."""

    def __init__(self, broken: frozenset[int] = frozenset()) -> None:
        self.opened: list[PlainSandbox] = []
        self._broken = broken
        self._count = 0
        self._lock = threading.Lock()

    def open(self, spec: SandboxSpec) -> PlainSandbox:
        with self._lock:
            self._count += 1
            if self._count in self._broken:
                raise SandboxError(f"number {self._count} of {spec.image} does not start")
            self.opened.append(PlainSandbox(self._count))
            return self.opened[-1]


def number(sandboxes: SandboxesAhead, spec: SandboxSpec = SPEC) -> int:
    sandbox = sandboxes.open(spec)
    return int(sandbox.execute("true", timeout_s=1).output.partition(":")[0])


def test_each_sandbox_is_given_out_once_and_all_are_ended() -> None:
    opener = PlainOpener()
    with SandboxesAhead(opener, SPEC) as sandboxes:
        given = [sandboxes.open(SPEC) for _ in range(5)]
        for sandbox in given:
            sandbox.close()
    assert len({id(sandbox) for sandbox in given}) == 5
    assert 5 <= len(opener.opened) <= 7
    assert all(sandbox.closed.is_set() for sandbox in opener.opened)


def test_no_more_are_started_when_enough_was_said() -> None:
    opener = PlainOpener()
    with SandboxesAhead(opener, SPEC) as sandboxes:
        sandboxes.open(SPEC).close()
        sandboxes.enough()
        started = len(opener.opened)
        number(sandboxes)
        assert len(opener.opened) <= max(started, 3) + 1
        opener.opened[-1].close()
    assert all(sandbox.closed.is_set() for sandbox in opener.opened)


def test_the_last_ones_leave_none_to_be_thrown_away() -> None:
    opener = PlainOpener()
    with SandboxesAhead(opener, SPEC) as sandboxes:
        number(sandboxes)
        sandboxes.expect(2)
        number(sandboxes)
        number(sandboxes)
        number_of_the_last = len(opener.opened)
    assert number_of_the_last == len(opener.opened) == 3


@pytest.mark.parametrize("told", [True, False])
def test_after_the_last_ones_more_are_started_ahead_again(told: bool) -> None:
    opener = PlainOpener()
    with SandboxesAhead(opener, SPEC, ahead=1) as sandboxes:
        sandboxes.expect(1)
        number(sandboxes)
        if told:
            sandboxes.expect(None)
        assert number(sandboxes) == 2
        while len(opener.opened) < 3:  # the test's timeout ends this
            threading.Event().wait(0.005)


def test_the_first_is_not_kept_waiting_by_the_second() -> None:
    class Slow(PlainOpener):
        at_once = most = 0

        def open(self, spec: SandboxSpec) -> PlainSandbox:
            self.at_once += 1
            self.most = max(self.most, self.at_once)
            threading.Event().wait(0.02)
            self.at_once -= 1
            return super().open(spec)

    opener = Slow()
    with SandboxesAhead(opener, SPEC, at_once=1) as sandboxes:
        assert number(sandboxes) == 1
    assert opener.most == 1


def test_another_kind_is_started_when_it_is_asked_for() -> None:
    opener = PlainOpener()
    with SandboxesAhead(opener, SPEC, ahead=1) as sandboxes:
        other = sandboxes.open(SandboxSpec("another", {"task": "1"}))
        other.close()
    assert all(sandbox.closed.is_set() for sandbox in opener.opened)


def test_one_that_died_while_it_waited_is_replaced() -> None:
    opener = PlainOpener()
    with SandboxesAhead(opener, SPEC, ahead=1) as sandboxes:
        while not opener.opened:
            threading.Event().wait(0.005)
        opener.opened[0].dead = True
        assert number(sandboxes) > 1
    assert opener.opened[0].closed.is_set()


def test_one_that_did_not_start_is_tried_again_and_the_second_failure_is_told() -> None:
    with SandboxesAhead(PlainOpener(frozenset({1})), SPEC, ahead=1) as sandboxes:
        assert number(sandboxes) > 1
    everything = frozenset(range(1, 100))
    with (
        SandboxesAhead(PlainOpener(everything), SPEC, ahead=1) as sandboxes,
        pytest.raises(SandboxError, match="does not start"),
    ):
        sandboxes.open(SPEC)


def test_a_failure_of_the_work_leaves_none_behind() -> None:
    opener = PlainOpener()
    with pytest.raises(RuntimeError, match="the work failed"), SandboxesAhead(opener, SPEC):
        raise RuntimeError("the work failed")
    assert all(sandbox.closed.is_set() for sandbox in opener.opened)

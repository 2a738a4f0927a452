"""What processes take, as Linux tells it in /proc (proc(5)): nothing has to be installed for it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.errors import BenchError

_PROC = Path("/proc")


@dataclass(frozen=True)
class Use:
    """What a process takes, or several together."""

    resident_kb: int
    descriptors: int
    threads: int


def require_proc() -> None:
    """Raise an error where there is nothing to read.

    Raises:
        BenchError: this is no Linux, or /proc is not mounted.
    """
    if not (_PROC / "self" / "status").exists():
        raise BenchError("What a process takes is read from /proc, which only Linux has.")


def use_with_children(pid: int) -> Use:
    """Return what a process and all below it take together. One below it that ends meanwhile counts as nothing.

    Raises:
        BenchError: there is no such process.
    """
    try:
        found = [use(pid)]
    except OSError as error:
        raise BenchError(f"There is no process {pid}.") from error
    for child in _below(pid):
        try:
            found.append(use(child))
        except OSError:
            continue
    return Use(
        sum(each.resident_kb for each in found),
        sum(each.descriptors for each in found),
        sum(each.threads for each in found),
    )


def use(pid: int) -> Use:
    """Return what one process takes.

    Raises:
        OSError: there is no such process, or it belongs to somebody else.
    """
    folder = _PROC / str(pid)
    lines = (folder / "status").read_text(encoding="utf-8", errors="replace").splitlines()
    fields = dict(line.partition(":")[::2] for line in lines)
    # A process that has ended and was not waited for has no memory any more.
    resident = fields.get("VmRSS", "0 kB").split()[0]
    return Use(int(resident), len(list((folder / "fd").iterdir())), int(fields["Threads"]))


def _below(pid: int) -> Iterator[int]:
    """Yield the processes below one. Each thread has a list of those that it started."""
    for listed in (_PROC / str(pid) / "task").glob("*/children"):
        try:
            children = listed.read_text(encoding="ascii").split()
        except OSError:
            continue
        for child in map(int, children):
            yield child
            yield from _below(child)

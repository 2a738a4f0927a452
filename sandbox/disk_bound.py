"""How much of the host's disk a set-up may take: the one step whose files do not lie in memory."""

from dataclasses import dataclass

from sandbox.errors import ImageError, SandboxError
from sandbox.types import Limits

_FACTOR = 4
"""A set-up may write this many times the disk limit; it holds whole dependency trees."""
_FILES = 1_000_000
_FREE = 1 << 30


@dataclass(frozen=True)
class DiskBound:
    """`root` may grow by `bytes` and `files`; the disk that it lies on keeps `free` bytes, whoever fills it."""

    root: str
    bytes: int
    files: int = _FILES
    free: int = _FREE


class DiskExceeded(SandboxError):  # noqa: N818
    """A command wrote more to the disk than it may, or the disk is nearly full; it was killed."""

    def __init__(self, what: str, amount: int) -> None:
        super().__init__(f"It wrote more to the disk than it may ({what}: {amount}).")
        self.what = what
        """`bytes`, `files`, `free` or `hidden`, as the guest says."""
        self.amount = amount


def setup_bytes(limits: Limits) -> int:
    return _FACTOR * limits.disk_mb << 20


def too_large(written: int, limits: Limits) -> ImageError:
    """Return the error of a set-up that wrote so many bytes."""
    return ImageError(
        f"The set-up wrote {written >> 20} MB, more than the {setup_bytes(limits) >> 20} MB it may "
        f"({_FACTOR} times ACROUTER_SANDBOX_DISK_MB)."
    )


def setup_error(exceeded: DiskExceeded, limits: Limits) -> ImageError:
    """Return what to tell people of a set-up that was killed."""
    match exceeded.what:
        case "bytes":
            return too_large(exceeded.amount, limits)
        case "files":
            return ImageError(f"The set-up wrote {exceeded.amount:,} files, more than the {_FILES:,} it may.")
        case "free":
            return ImageError(
                f"The disk that set-ups are kept on has {exceeded.amount >> 20} MB left, and {_FREE >> 20} MB are to "
                "stay free. Whoever runs acrouter can make room, or lower ACROUTER_CACHE_GB."
            )
        case _:
            return ImageError("The set-up made folders that cannot be looked into: what it wrote cannot be bounded.")

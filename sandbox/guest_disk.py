"""Watches, inside a sandbox, what its commands write to the host's disk. A part of the guest: see `sandbox.guest`.

A set-up writes outside of the memory that bounds all other commands. No file system can be counted on to bound a
folder, so it is looked at again and again.
"""

from __future__ import annotations

import os
import stat
import time

TYPE_CHECKING = False  # type checkers take it for typing's own, whose import would make every start slower
if TYPE_CHECKING:
    from typing import Any

LONGEST_S = 2.0
"""Between two looks, if looking does not take long."""
SHARE = 4
"""Waiting takes at least this many times as long as looking."""


class DiskWatch:
    """`root` may grow by `bytes` and `files` from what it is now, and the disk keeps `free` bytes."""

    GLANCE_S = 0.1
    """Between two questions how much is free, which cost nothing."""

    def __init__(self, bound: dict[str, Any]) -> None:
        self.bound = bound
        self.had = {"files": 0, "bytes": 0}
        self.had = self.use(float("inf"), float("inf"))
        self.free = self.free_now()
        self.left = bound["bytes"]
        self.earliest = self.latest = 0.0

    def look(self) -> list[Any] | None:
        """Return what is exceeded and by what amount, or None.

        Soon after the last look nothing is looked at, unless the disk has lost what was left to write by then.
        """
        now, free = time.monotonic(), self.free_now()
        lost = self.free - free > self.left or free < self.bound["free"]
        if now < self.earliest or (now < self.latest and not lost):
            return None
        self.free = free
        exceeded = self.exceeded()
        took = time.monotonic() - now
        self.earliest = now + took + SHARE * took
        self.latest = max(self.earliest, now + LONGEST_S)
        return exceeded

    def free_now(self) -> int:
        disk = os.statvfs(self.bound["root"])
        return disk.f_bavail * disk.f_frsize

    def exceeded(self) -> list[Any] | None:
        free = self.free_now()
        if free < self.bound["free"]:
            return ["free", free]
        try:
            now = self.use(self.bound["files"], self.bound["bytes"])
        except OSError:  # a folder that is nested too deep, or that keeps its owner out
            return ["hidden", 0]
        self.left = self.bound["bytes"] - now["bytes"]
        for what in ("bytes", "files"):
            if now[what] > self.bound[what]:
                return [what, now[what]]
        return None

    def use(self, most_files: float, most_bytes: float) -> dict[str, int]:
        """Count what has come since the start, and stop where it is too much: an endless tree has no end to walk to.

        A sparse file counts as long as it says it is: it is that long once the set-up is kept.
        """
        root = self.bound["root"]
        device = os.lstat(root).st_dev
        files, size = -self.had["files"], -self.had["bytes"]
        linked: set[int] = set()
        folders = [root]
        while folders:
            try:
                with os.scandir(folders.pop()) as found:
                    for entry in found:
                        try:
                            about = entry.stat(follow_symlinks=False)
                        except FileNotFoundError:  # it is gone again
                            continue
                        files += 1
                        if stat.S_ISDIR(about.st_mode):
                            if about.st_dev == device:
                                folders.append(entry.path)
                        elif about.st_nlink > 1:
                            if about.st_ino in linked:
                                continue
                            linked.add(about.st_ino)
                        size += max(about.st_size, about.st_blocks * 512)
                        if files > most_files or size > most_bytes:
                            return {"files": files, "bytes": size}
            except (FileNotFoundError, NotADirectoryError):
                continue
        return {"files": files, "bytes": size}

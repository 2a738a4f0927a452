"""The archive of a repository's last commit, kept for the next one, with the place of every file in it.

It is a cache: whatever is wrong with it, it counts as not there.
"""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Entry(NamedTuple):
    """One line of a tree's listing."""

    mode: str
    """As git writes it: 100644, 100755, 120000 (a link), 160000 (a submodule), 040000."""
    object_id: str
    path: str
    """Bytes that are no UTF-8 as surrogate escapes."""


class Piece(NamedTuple):
    """A part of an archive, in bytes."""

    start: int
    length: int


@dataclass(frozen=True)
class LastArchive:
    """The kept archive, open."""

    file: BinaryIO
    pieces: Mapping[Entry, Piece]


class KeptArchive:
    """One archive in `folder`: `NAME.tar`, and `NAME.places`, which is written last. A name stands for one content."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def give(self, name: str, destination: Path) -> bool:
        """Make `destination` the archive of this name; return whether it was here."""
        archive = self._folder / f"{name}.tar"
        if self._places(name) is None:
            return False
        try:
            _link_or_copy(archive, destination)
        except OSError:
            destination.unlink(missing_ok=True)
            return False
        return True

    @contextmanager
    def open(self) -> Iterator[LastArchive | None]:
        """Give the archive of the last tree, or None where there is none."""
        with contextlib.ExitStack() as stack:
            for found in self._folder.glob("*.places"):
                pieces = self._places(found.stem)
                with contextlib.suppress(OSError):
                    if pieces is not None:
                        file = stack.enter_context(found.with_suffix(".tar").open("rb"))
                        yield LastArchive(file, pieces)
                        return
            yield None

    def replace(self, name: str, archive: Path, pieces: Mapping[Entry, Piece]) -> None:
        """Keep `archive` instead of what is kept; where another process is at it, or the disk is full, it is not."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(contextlib.suppress(OSError))
            self._folder.mkdir(exist_ok=True)
            lock = stack.enter_context((self._folder / "lock").open("w"))
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for old in self._folder.iterdir():
                if old.name != "lock":
                    old.unlink(missing_ok=True)
            _link_or_copy(archive, self._folder / f"{name}.tar")
            records = [f"{_boot()} {archive.stat().st_size}"]
            records += [f"{e.mode} {e.object_id} {p.start} {p.length} {e.path}" for e, p in pieces.items()]
            draft = self._folder / "draft"
            draft.write_bytes("\0".join(records).encode("utf-8", "surrogateescape"))
            draft.rename(self._folder / f"{name}.places")

    def _places(self, name: str) -> dict[Entry, Piece] | None:
        """Return where everything stands in a kept archive; None where it is not whole, or was written before the
        machine started last: what a power failure left of it is not known.
        """
        try:
            content = (self._folder / f"{name}.places").read_bytes()
            size = (self._folder / f"{name}.tar").stat().st_size
        except OSError:
            return None
        first, *records = content.decode("utf-8", "surrogateescape").split("\0")
        if first != f"{_boot()} {size}":
            return None
        pieces = {}
        try:
            for record in records:
                mode, object_id, start, length, path = record.split(" ", 4)
                pieces[Entry(mode, object_id, path)] = Piece(int(start), int(length))
        except ValueError:
            return None
        return pieces


def _link_or_copy(source: Path, destination: Path) -> None:
    """Give a file a second name, or copy it where that cannot be; archives are never written into again."""
    try:
        os.link(source, destination)
    except OSError:
        shutil.copyfile(source, destination)


def _boot() -> str:
    """Return what names the time since the machine started; without /proc always the same."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return "-"

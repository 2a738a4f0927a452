"""Checks tar archives before anything unpacks them."""

import tarfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path, PurePosixPath

from sandbox.errors import CheckoutError


class PathCheck:
    """Looks at a tree's paths in their order, whether unpacking them would leave the folder they are unpacked in."""

    def __init__(self) -> None:
        self._links: set[PurePosixPath] = set()

    def add(self, name: str, *, is_link: bool) -> PurePosixPath:
        """Return the path `name`.

        Raises:
            CheckoutError: it is absolute, has a `..` or a `.git` in it, or goes through a link before it.
        """
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            raise CheckoutError(f"The archive has a path outside of the tree: {name!r}.")
        if any(part.lower() == ".git" for part in path.parts):
            raise CheckoutError(f"The archive has a path inside of a .git folder: {name!r}.")
        if self._links and (path in self._links or not self._links.isdisjoint(path.parents)):
            raise CheckoutError(f"The archive writes through a link of its own: {name!r}.")
        if is_link:
            self._links.add(path)
        return path


def check_archive(archive: Path) -> list[str]:
    """Return the names of an uncompressed tar's files and links.

    An archive that was looked at and has not changed since is not looked at again.

    Raises:
        CheckoutError: it is no tar, or it would write outside of where it is unpacked: absolute names, `..`, a path
            through one of its own links, hard links, devices; or it brings a `.git`.
    """
    try:
        found = archive.stat()
    except OSError as error:
        raise _unreadable(archive, error) from error
    return list(_names(archive, found.st_ino, found.st_dev, found.st_size, found.st_mtime_ns))


@lru_cache(maxsize=8)
def _names(archive: Path, *_state: int) -> tuple[str, ...]:
    names: list[str] = []
    check = PathCheck()
    for member in _members(archive):
        path = check.add(member.name, is_link=member.issym())
        if not (member.isreg() or member.isdir() or member.issym()):
            raise CheckoutError(f"The archive has something that is no file, folder or link: {member.name!r}.")
        if not member.isdir():
            names.append(path.as_posix())
    return tuple(names)


def read_member(archive: Path, names: set[str], limit: int = 1_000_000) -> dict[str, bytes]:
    """Return the content (its first `limit` bytes) of the regular files `names`, where they are there."""
    found = {}
    with tarfile.open(archive, "r:") as tar:
        for member in tar:
            name = PurePosixPath(member.name).as_posix()
            if name in names and member.isreg() and (file := tar.extractfile(member)):
                found[name] = file.read(limit)
    return found


def _members(archive: Path) -> Iterator[tarfile.TarInfo]:
    try:
        with tarfile.open(archive, "r:") as tar:
            yield from tar
    except (tarfile.TarError, OSError) as error:
        raise _unreadable(archive, error) from error


def _unreadable(archive: Path, error: Exception) -> CheckoutError:
    return CheckoutError(f"{archive.name} is not an uncompressed tar archive: {error}")

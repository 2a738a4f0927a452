"""Checks tar archives before anything unpacks them."""

import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from sandbox.errors import CheckoutError


def check_archive(archive: Path) -> list[str]:
    """Return the names of an uncompressed tar's files and links.

    Raises:
        CheckoutError: it is no tar, or it would write outside of where it is unpacked: absolute names, `..`, a path
            through one of its own links, hard links, devices; or it brings a `.git`.
    """
    names: list[str] = []
    links: set[PurePosixPath] = set()
    for member in _members(archive):
        path = PurePosixPath(member.name)
        if path.is_absolute() or ".." in path.parts:
            raise CheckoutError(f"The archive has a path outside of the tree: {member.name!r}.")
        if any(part.lower() == ".git" for part in path.parts):
            raise CheckoutError(f"The archive has a path inside of a .git folder: {member.name!r}.")
        if path in links or not links.isdisjoint(path.parents):
            raise CheckoutError(f"The archive writes through a link of its own: {member.name!r}.")
        if member.issym():
            links.add(path)
        elif not (member.isreg() or member.isdir()):
            raise CheckoutError(f"The archive has something that is no file, folder or link: {member.name!r}.")
        if not member.isdir():
            names.append(path.as_posix())
    return names


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
        raise CheckoutError(f"{archive.name} is not an uncompressed tar archive: {error}") from error

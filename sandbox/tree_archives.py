"""Trees of a bare repository as tar archives, each made from the last one.

Two commits of a repository share nearly all of their files. The archive of the last commit is kept beside the objects,
with the place of every file in it: the next archive copies from there what is the same, in long pieces and without
unpacking an object, and asks git only for the rest. Nothing is ever unpacked on the host, and content comes from
`git cat-file`, which knows no attributes, filters or configuration of a tree.
"""

import hashlib
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from sandbox.archives import PathCheck
from sandbox.bare import LISTING_LIMIT, BareRepository, DamagedError
from sandbox.errors import CheckoutError
from sandbox.kept_archive import Entry, KeptArchive, Piece
from sandbox.lfs import FILE_MODES, fetched_files, files_of
from sandbox.submodules import MOST, fetched_submodules

_MOST_ENTRIES = 1_000_000
"""Of a tree and its submodules together."""
_LONGEST_LINK = 4096
"""Bytes of a link's target (PATH_MAX). It is held in memory."""
_HEADER_LENGTH = 2 * tarfile.BLOCKSIZE
"""What a file's piece of an archive has besides its content, at most, where its path is no long one."""
_CHUNK = 1 << 20
# The sandbox stamps files when it unpacks them, so one tree is one archive. Zip files know no time before 1980.
_TIME = 946_684_800
_LINK, _SUBMODULE, _TREE = "120000", "160000", "040000"
_PERMISSIONS = {"100644": 0o644, "100664": 0o644, "100755": 0o755, _LINK: 0o777, _SUBMODULE: 0o755, _TREE: 0o755}


class TreeArchives:
    """Writes trees of a bare repository as archives. Processes may share it."""

    def __init__(self, repository: BareRepository, largest: int) -> None:
        """`largest` is how many bytes of files a tree may hold: a repository of some kilobytes can name one file again
        and again.
        """
        self._repository = repository
        self._largest = largest
        self._kept = KeptArchive(repository.folder / "acrouter-archive")

    def write(self, tree: str, destination: Path, *, keep: bool) -> None:
        """Write a tree; `keep` it as the one that the next is made from.

        Raises:
            CheckoutError: it is not here, is too large, or has paths that would be dangerous to unpack.
        """
        destination.unlink(missing_ok=True)  # it may share its bytes with the one that is kept
        submodules, files = fetched_submodules(self._repository), fetched_files(self._repository)
        name = tree
        if submodules or files:
            fetched = " ".join((*sorted(submodules), *sorted(files)))
            name += "-" + hashlib.sha256(fetched.encode()).hexdigest()[:16]
        if self._kept.give(name, destination):
            return
        with ExitStack() as stack:
            folder = tempfile.TemporaryDirectory(prefix=".acrouter-", dir=destination.parent)
            scratch = Path(stack.enter_context(folder))
            entries = self._list(tree, submodules, scratch / "listing")
            if files:
                entries = list(_with_files(entries, files_of(self._repository, tree, files)))
            last = stack.enter_context(self._kept.open())
            known = last.pieces if last is not None else {}
            missing = [entry for entry in entries if entry not in known and entry.mode not in (_TREE, _SUBMODULE)]
            sizes = self._sizes(missing)
            self._check_size(entries, known, sizes)
            blobs = _Blobs(stack.enter_context(self._contents(sizes, scratch / "contents")), sizes)
            archive = stack.enter_context(destination.open("xb", buffering=_CHUNK))
            pieces = _assemble(entries, last.file if last is not None else None, known, blobs, archive)
        if keep:
            self._kept.replace(name, destination, pieces)

    def _list(self, tree: str, submodules: frozenset[str], listing: Path) -> list[Entry]:
        check = PathCheck()
        entries: list[Entry] = []

        def take(entry: Entry) -> None:
            check.add(entry.path, is_link=entry.mode == _LINK)
            entries.append(entry)
            if len(entries) > _MOST_ENTRIES:
                raise CheckoutError(f"The tree has more than {_MOST_ENTRIES:,} files and folders.")

        left = MOST
        for entry in self._lines(tree, listing):
            take(entry)
            if entry.mode == _SUBMODULE and entry.object_id in submodules and left:
                left -= 1
                for inner in self._lines(entry.object_id, listing):
                    take(inner._replace(path=f"{entry.path}/{inner.path}"))
        return entries

    def _lines(self, tree: str, listing: Path) -> list[Entry]:
        arguments = ("ls-tree", "-r", "-t", "-z", "--full-tree", tree)
        self._repository.git(*arguments, stdout_to=listing, file_limit=LISTING_LIMIT)
        entries = []
        for line in listing.read_bytes().decode("utf-8", "surrogateescape").split("\0")[:-1]:
            attributes, path = line.split("\t", 1)
            mode, _, object_id = attributes.split(" ")
            entries.append(Entry(mode, object_id, path))
        return entries

    def _sizes(self, entries: Sequence[Entry]) -> Mapping[str, int]:
        """Return the size of each object once, in the order of its first entry."""
        paths = {entry.object_id: entry.path for entry in reversed(entries)}
        wanted = list(dict.fromkeys(entry.object_id for entry in entries))
        if not wanted:
            return {}
        told = self._repository.git("cat-file", "--batch-check", "--buffer", stdin=_lines(wanted)).decode("ascii")
        sizes = {}
        for object_id, line in zip(wanted, told.splitlines(), strict=True):
            words = line.split()
            if len(words) != 3 or words[:2] != [object_id, "blob"]:
                kind = DamagedError if words[-1:] == ["missing"] else CheckoutError
                raise kind(f"{paths[object_id]!r} is not in the mirror: git says {line!r}.")
            sizes[object_id] = int(words[2])
        return sizes

    def _check_size(self, entries: Iterable[Entry], known: Mapping[Entry, Piece], sizes: Mapping[str, int]) -> None:
        total = 0
        for entry in entries:
            if (piece := known.get(entry)) is not None:
                total += max(piece.length - _HEADER_LENGTH, 0)
                continue
            size = sizes.get(entry.object_id, 0)  # a folder has none
            if entry.mode == _LINK and size > _LONGEST_LINK:
                raise CheckoutError(f"{entry.path!r} is a link to a path of {size:,} bytes.")
            total += size
        if total > self._largest:
            raise CheckoutError(
                f"The tree holds {total >> 20:,} MB of files, more than the {self._largest >> 20:,} MB that a sandbox "
                "has for it (5/8 of ACROUTER_SANDBOX_DISK_MB)."
            )

    def _contents(self, sizes: Mapping[str, int], contents: Path) -> BinaryIO:
        if not sizes:
            return BytesIO()
        self._repository.git("cat-file", "--batch", "--buffer", stdin=_lines(sizes), stdout_to=contents)
        return contents.open("rb")


def _lines(object_ids: Iterable[str]) -> bytes:
    return "".join(f"{object_id}\n" for object_id in object_ids).encode()


def _with_files(entries: Iterable[Entry], files: Mapping[str, str]) -> Iterator[Entry]:
    """Put the files that LFS keeps in the place of their pointers. A link is never one."""
    for entry in entries:
        file = files.get(entry.object_id) if entry.mode in FILE_MODES else None
        yield entry if file is None else entry._replace(object_id=file)


class _Blobs:
    """What `git cat-file --batch` printed: for each object a line `ID TYPE SIZE`, its bytes and a line's end."""

    def __init__(self, file: BinaryIO, sizes: Mapping[str, int]) -> None:
        """`sizes` are those of all its objects, in their order."""
        self._file = file
        self._places: dict[str, Piece] = {}
        end = 0
        for object_id, size in sizes.items():
            start = end + len(f"{object_id} blob {size}\n")
            self._places[object_id] = Piece(start, size)
            end = start + size + 1

    def size(self, object_id: str) -> int:
        return self._places[object_id].length

    def read(self, object_id: str) -> Iterator[bytes]:
        """Give the object's bytes; all of them must be taken before the next object's."""
        start, left = self._places[object_id]
        if self._file.tell() != start:
            self._file.seek(start)
        while left:
            data = self._file.read(min(left, _CHUNK))
            if not data:
                raise CheckoutError("git gave less of an object than it said.")
            left -= len(data)
            yield data


def _assemble(
    entries: Iterable[Entry], last: BinaryIO | None, known: Mapping[Entry, Piece], blobs: _Blobs, archive: BinaryIO
) -> dict[Entry, Piece]:
    """Write the entries in their order and return where each one stands."""
    pieces: dict[Entry, Piece] = {}
    end = 0
    run = Piece(0, 0)  # of the last archive, not copied yet

    def copy_run() -> None:
        if run.length:
            assert last is not None
            _copy(last, run, archive)

    for entry in entries:
        if (piece := known.get(entry)) is not None:
            if piece.start != run.start + run.length:
                copy_run()
                run = Piece(piece.start, 0)
            run = Piece(run.start, run.length + piece.length)
            length = piece.length
        else:
            copy_run()
            run = Piece(0, 0)
            length = _append(entry, blobs, archive)
        pieces[entry] = Piece(end, length)
        end += length
    copy_run()
    archive.write(bytes(2 * tarfile.BLOCKSIZE))
    return pieces


def _append(entry: Entry, blobs: _Blobs, archive: BinaryIO) -> int:
    """Write one entry with its content and return its length in bytes."""
    info = tarfile.TarInfo(entry.path)
    info.mtime = _TIME
    info.mode = _PERMISSIONS.get(entry.mode, 0o644)
    content: Iterable[bytes] = ()
    if entry.mode in (_TREE, _SUBMODULE):
        info.type = tarfile.DIRTYPE
    elif entry.mode == _LINK:
        info.type = tarfile.SYMTYPE
        info.linkname = b"".join(blobs.read(entry.object_id)).decode("utf-8", "surrogateescape")
    else:
        info.size = blobs.size(entry.object_id)
        content = blobs.read(entry.object_id)
    header = info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
    archive.write(header)
    for data in content:
        archive.write(data)
    padding = -info.size % tarfile.BLOCKSIZE
    archive.write(bytes(padding))
    return len(header) + info.size + padding


def _copy(source: BinaryIO, piece: Piece, archive: BinaryIO) -> None:
    source.seek(piece.start)
    left = piece.length
    while left:
        data = source.read(min(left, _CHUNK))
        if not data:
            raise CheckoutError("The archive of the last commit is shorter than it was.")
        left -= len(data)
        archive.write(data)

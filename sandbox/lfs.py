"""Git LFS: the files that a tree's pointers stand for, fetched into the mirror without git-lfs.

Each becomes a blob of the mirror with a ref that names its pointer's blob, and archives hold it in the pointer's place.
The limits hold for a tree, whatever was fetched for others before: what is beyond them stays a pointer.
Nothing of a tree is configuration: `.lfsconfig` is not read, and the only server that is asked is the repository's own.

Pointers: https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md
"""

import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path

from sandbox.bare import LISTING_LIMIT, BareRepository
from sandbox.errors import CheckoutError, RemoteUnavailable
from sandbox.lfs_server import Download, LfsServer, Pointer
from sandbox.remotes import GitRemote

FETCHED = "refs/acrouter/lfs"
"""Below it stands each file that was fetched, by the blob of its pointer."""
MOST = 1000
"""Files of one tree; of more, the first ones."""
SIZE_LIMIT = 512 << 20
"""Bytes of all files of one tree together."""
FILE_MODES = frozenset({"100644", "100755"})
"""A link whose target reads like a pointer is none."""
_BATCH = 100
_POINTER_SIZES = range(100, 200)
_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\noid sha256:(?P<oid>[0-9a-f]{64})\nsize (?P<size>\d{1,15})\n"
)


def fetched_files(repository: BareRepository) -> Mapping[str, str]:
    """Return the blob of each file that was fetched, by the blob of its pointer."""
    listed = repository.git("for-each-ref", "--format=%(refname:lstrip=3) %(objectname)", FETCHED).decode("ascii")
    return dict(line.split(" ") for line in listed.splitlines())


def files_of(repository: BareRepository, tree: str, fetched: Mapping[str, str]) -> Mapping[str, str]:
    """Return those of the fetched files that a commit or tree may have, by the blob of its pointer."""
    within, _ = _bounded(pointers_of(repository, tree))
    return {pointer.blob: fetched[pointer.blob] for pointer in within if pointer.blob in fetched}


def pointers_of(repository: BareRepository, tree: str) -> Sequence[Pointer]:
    """Return the pointers of a commit or tree, in the order of their paths."""
    small = {
        path: blob
        for mode, blob, size, path in _listed(repository, tree)
        if mode in FILE_MODES and size.isdigit() and int(size) in _POINTER_SIZES
    }
    if not small:
        return ()
    wanted = "".join(f"{blob}\n" for blob in dict.fromkeys(small.values())).encode()
    contents = BytesIO(repository.git("cat-file", "--batch", "--buffer", stdin=wanted))
    found = {}
    while head := contents.readline().decode("ascii"):
        blob, _, size = head.split()
        if match := _POINTER.fullmatch(contents.read(int(size))):
            found[blob] = (match["oid"].decode("ascii"), int(match["size"]))
        contents.read(1)
    return [Pointer(path, blob, *found[blob]) for path, blob in small.items() if blob in found]


def fetch_files(repository: BareRepository, remote: GitRemote, tree: str, *, timeout_s: float) -> Sequence[str]:
    """Fetch the files of a tree's pointers, and return what cannot be had, as sentences.

    Raises:
        RemoteUnavailable: the server did not answer, or not in time.
    """
    known = fetched_files(repository)
    missing: defaultdict[str, list[str]] = defaultdict(list)
    within, beyond = _bounded(pointers_of(repository, tree))
    if beyond:
        missing[f"{MOST} are fetched at most, and {SIZE_LIMIT >> 20} MB."] = [pointer.path for pointer in beyond]
    chosen = [pointer for pointer in within if pointer.blob not in known]
    server = LfsServer(remote, time.monotonic() + timeout_s)
    for start in range(0, len(chosen), _BATCH):
        batch = chosen[start : start + _BATCH]
        try:
            downloads = server.ask(batch)
        except RemoteUnavailable:
            raise
        except CheckoutError as error:
            missing[str(error)] += [pointer.path for pointer in batch]
            continue
        for pointer in batch:
            try:
                _take(repository, server, pointer, downloads.get(pointer.oid))
            except RemoteUnavailable:
                raise
            except CheckoutError as error:
                missing[str(error)].append(pointer.path)
    return [_sentence(paths, why) for why, paths in missing.items()]


def _bounded(pointers: Sequence[Pointer]) -> tuple[list[Pointer], list[Pointer]]:
    """Return the pointers, each blob once, of the files that one tree may have, and the others."""
    within: list[Pointer] = []
    beyond: list[Pointer] = []
    left = SIZE_LIMIT
    distinct: dict[str, Pointer] = {}
    for pointer in pointers:
        distinct.setdefault(pointer.blob, pointer)
    for pointer in distinct.values():
        if len(within) < MOST and pointer.size <= left:
            within.append(pointer)
            left -= pointer.size
        else:
            beyond.append(pointer)
    return within, beyond


def _sentence(paths: Sequence[str], why: str) -> str:
    if len(paths) == 1:
        return f"The LFS file {paths[0]!r} is missing: {why}"
    return f"{len(paths)} LFS files are missing, {paths[0]!r} the first: {why}"


def _listed(repository: BareRepository, tree: str) -> Iterator[tuple[str, str, str, str]]:
    """Give mode, object, size and path of each file of a tree."""
    with tempfile.TemporaryDirectory(prefix="acrouter-tree-") as folder:
        listing = Path(folder) / "listing"
        arguments = ("ls-tree", "-r", "-l", "-z", "--full-tree", tree)
        repository.git(*arguments, stdout_to=listing, file_limit=LISTING_LIMIT)
        lines = listing.read_bytes().decode("utf-8", "surrogateescape").split("\0")[:-1]
    for line in lines:
        attributes, path = line.split("\t", 1)
        mode, _, blob, size = attributes.split()
        yield mode, blob, size, path


def _take(repository: BareRepository, server: LfsServer, pointer: Pointer, download: Download | None) -> None:
    if download is None:
        raise CheckoutError("the server does not have it.")
    with tempfile.TemporaryDirectory(prefix="acrouter-lfs-", dir=repository.folder) as folder:
        file = Path(folder) / "file"
        server.download(download, pointer, file)
        # Such files are mostly compressed already.
        blob = repository.git("-c", "core.looseCompression=0", "hash-object", "-w", "--no-filters", "--", str(file))
    repository.git("update-ref", f"{FETCHED}/{pointer.blob}", blob.decode("ascii").strip())

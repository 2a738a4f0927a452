"""A bare repository of ours on the host: where git runs, and the lock that its writers share."""

import fcntl
import os
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from sandbox.errors import CheckoutError, RemoteUnavailable
from sandbox.git import GitFailedError, run_git
from sandbox.remotes import GitRemote

SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
# git-check-ref-format(1), for full names.
REF = re.compile(r"refs/(?!.*(?:\.\.|//|@\{|\.lock(?:/|$)|/\.|\.$|/$))[^\x00-\x20\x7f~^:?*\[\\]+")
LISTING_LIMIT = 64 << 20
"""Bytes of a tree's listing, about half a million files. A small tree can name itself again and again, and what is
listed is held in memory."""
LOCAL_S = 120.0
"""Time limit of a git command that needs no network."""
DOOMED_SUFFIX = ".doomed"
"""Of a folder that is being removed; what a killed process leaves of it is found by that."""
_UNFINISHED = "objects/pack/tmp_*"
"""What git writes a pack into; one that is killed leaves it there."""
_DAMAGED = re.compile(
    r"^(?!remote:).*(?:bad object|cannot lock ref|all necessary objects|not a git repository: |bad config line"
    r"|unresolved deltas|is corrupt|unable to read|missing (?:blob|tree|commit)|bad tree object|not a tree object"
    r"|could not get object info|does not match index)",
    re.MULTILINE,
)
"""What git says where this repository is to blame."""
_TIDYING = {"gc.auto": "6700", "gc.autoPackLimit": "50", "gc.autoDetach": "false", "gc.bigPackThreshold": "100m"}
"""git's own numbers; nothing of it goes on in the background."""
# Highest precedence of all attributes: those of a tree do nothing.
_ATTRIBUTES = (
    "* -export-ignore -export-subst -text !eol -ident -filter !working-tree-encoding !diff !merge !whitespace\n"
)


class RepositoryTooLargeError(CheckoutError):
    """What a fetch gave takes more than it may; the message says how much that is, as the end of a sentence."""


class DamagedError(CheckoutError):
    """An object is not there, though what refers to it is."""


def is_damage(error: CheckoutError) -> bool:
    """Return whether an error tells of a repository of ours that a crash, or its disk, has damaged."""
    if isinstance(error, GitFailedError):
        return _DAMAGED.search(str(error)) is not None
    return isinstance(error, DamagedError)  # other words of ours hold a stranger's


class BareRepository:
    """A bare repository in `folder`, made when it is missing. Processes may share it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()

    def git(
        self,
        *arguments: str,
        timeout_s: float = LOCAL_S,
        stdin: bytes = b"",
        stdout_to: Path | None = None,
        file_limit: int | None = None,
        remote: GitRemote | None = None,
        environment: dict[str, str] | None = None,
        local: bool = False,
    ) -> bytes:
        """Run one git command here; see `sandbox.git.run_git`."""
        return run_git(
            arguments,
            git_dir=self.folder,
            timeout_s=timeout_s,
            stdin=stdin,
            stdout_to=stdout_to,
            file_limit=file_limit,
            remote=remote,
            environment=environment,
            allow_local=local,
        )

    @property
    def exists(self) -> bool:
        return (self.folder / "HEAD").exists()

    @property
    def used_at(self) -> float:
        """When it was used last, in seconds since the epoch; of one that is not finished, when it was begun."""
        try:
            return (self.folder / "info" / "attributes").stat().st_mtime
        except FileNotFoundError:
            return (self.folder / "HEAD").stat().st_mtime

    def ensure(self) -> None:
        """Make it where it is missing, and note that it is used."""
        attributes = self.folder / "info" / "attributes"
        if not attributes.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            self._init()
            attributes.parent.mkdir(exist_ok=True)
            # Written last and at once: a mirror without it is not finished.
            draft = attributes.with_suffix(f".{time.monotonic_ns()}")
            draft.write_text(_ATTRIBUTES, encoding="ascii")
            draft.rename(attributes)
        os.utime(attributes)

    def fetch(
        self,
        remote: GitRemote,
        wanted: Sequence[str],
        *options: str,
        timeout_s: float,
        largest_pack: int,
        local: bool = False,
    ) -> None:
        """Fetch refspecs, as one pack of at most `largest_pack` bytes.

        What an unfinished fetch has left is removed, and what a crash has damaged is mended.

        Raises:
            RepositoryTooLargeError: it takes more.
            RemoteUnavailable: another fetch did not end within `timeout_s`.
            GitFailedError: git failed, or took longer.
        """
        with self.locked(timeout_s):
            self.ensure()
            self._drop_unfinished()
            arguments = (
                *("-c", "fetch.unpackLimit=1", "fetch", "--quiet", "--no-tags", "--no-write-fetch-head"),
                *("--no-recurse-submodules", *options, "--end-of-options", remote.url, *wanted),
            )
            fetch = partial(
                self.git, *arguments, timeout_s=timeout_s, remote=remote, local=local, file_limit=largest_pack
            )
            try:
                try:
                    fetch()
                except GitFailedError as error:
                    if not is_damage(error):
                        raise
                    self._mend()
                    fetch()
            except GitFailedError as error:
                # git says no more of it than that the pack cannot be read.
                if any(path.stat().st_size >= largest_pack for path in self.folder.glob(_UNFINISHED)):
                    raise RepositoryTooLargeError(f"it takes more than {largest_pack // 1_000_000:,} MB.") from error
                raise
            finally:
                self._drop_unfinished()

    def tidy(self, timeout_s: float) -> None:
        """Let git pack what many fetches and patches have left anew, where its rule (git-gc(1)) says that it is due.

        What nothing refers to goes after git's two weeks; large packs stay as they are, so that it takes seconds.

        Raises:
            RemoteUnavailable: it is fetched into.
            GitFailedError: git failed, or took longer than `timeout_s`.
        """
        with self.locked(timeout_s=0):
            rule = [part for name, value in _TIDYING.items() for part in ("-c", f"{name}={value}")]
            try:
                self.git(*rule, "gc", "--auto", "--quiet", timeout_s=timeout_s)
            finally:
                self._drop_unfinished()

    def drop(self, timeout_s: float) -> None:
        """Remove it with all that is in it.

        Raises:
            RemoteUnavailable: it is fetched into.
        """
        with self.locked(timeout_s), suppress(FileNotFoundError):  # another process was quicker
            remove_folder(self.folder)

    def _mend(self) -> None:
        """Make it anew but for its objects, which git fetches again where they are damaged.

        A machine that loses power leaves refs empty, and a git that is killed its locks. Both would stay for ever.
        """
        shutil.rmtree(self.folder / "refs", ignore_errors=True)
        for path in (
            *map(self.folder.joinpath, ("packed-refs", "shallow", "HEAD", "config")),
            *self.folder.glob("*.lock"),
        ):
            path.unlink(missing_ok=True)
        self._init()

    def _init(self) -> None:
        self.git("init", "--quiet", "--bare", "--template=", str(self.folder))

    def _drop_unfinished(self) -> None:
        for path in self.folder.glob(_UNFINISHED):
            path.unlink(missing_ok=True)

    @contextmanager
    def locked(self, timeout_s: float) -> Iterator[None]:
        """Keep every other process from fetching into it, or from removing it.

        Raises:
            RemoteUnavailable: another one did not end within `timeout_s`.
        """
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        deadline = time.monotonic() + timeout_s
        with self.folder.with_name(f"{self.folder.name}.lock").open("w") as lock:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise RemoteUnavailable(f"Another fetch into {self.folder.name} takes too long.") from None
                    time.sleep(0.05)
            yield


def remove_folder(folder: Path) -> None:
    """Remove a folder: gone at once under its name, then from the disk."""
    doomed = folder.with_name(f".{folder.name}.{time.monotonic_ns()}{DOOMED_SUFFIX}")
    folder.rename(doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def checked_sha(text: str) -> str:
    """Return `text`, which is a full SHA.

    Raises:
        CheckoutError: it is not.
    """
    if not SHA.fullmatch(text):
        raise CheckoutError(f"{text!r} is not a full SHA.")
    return text

"""A bare repository of ours on the host: where git runs, and the lock that its writers share."""

import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sandbox.errors import CheckoutError, RemoteUnavailable
from sandbox.git import run_git
from sandbox.remotes import GitRemote

SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
# git-check-ref-format(1), for full names.
REF = re.compile(r"refs/(?!.*(?:\.\.|//|@\{|\.lock(?:/|$)|/\.|\.$|/$))[^\x00-\x20\x7f~^:?*\[\\]+")
LISTING_LIMIT = 64 << 20
"""Bytes of a tree's listing, about half a million files. A small tree can name itself again and again, and what is
listed is held in memory."""
LOCAL_S = 120.0
"""Time limit of a git command that needs no network."""
# Highest precedence of all attributes: those of a tree do nothing.
_ATTRIBUTES = (
    "* -export-ignore -export-subst -text !eol -ident -filter !working-tree-encoding !diff !merge !whitespace\n"
)


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
            self.git("init", "--quiet", "--bare", "--template=", str(self.folder))
            attributes.parent.mkdir(exist_ok=True)
            # Written last and at once: a mirror without it is not finished.
            draft = attributes.with_suffix(f".{time.monotonic_ns()}")
            draft.write_text(_ATTRIBUTES, encoding="ascii")
            draft.rename(attributes)
        os.utime(attributes)

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


def checked_sha(text: str) -> str:
    """Return `text`, which is a full SHA.

    Raises:
        CheckoutError: it is not.
    """
    if not SHA.fullmatch(text):
        raise CheckoutError(f"{text!r} is not a full SHA.")
    return text

"""What acrouter keeps to be quick, and may throw away: by age and by size, the longest unused first."""

import contextlib
import os
import shutil
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox.bare import DOOMED_SUFFIX, BareRepository, remove_folder
from sandbox.errors import CheckoutError, RemoteUnavailable
from sandbox.named_locks import NamedLocks
from sandbox.types import CacheLimits

GRACE_S = 6 * 3600.0
"""What was used so recently stays, whatever it takes: a task may still work with it."""
DRAFT_PREFIX = ".draft-"
"""Of a folder that is being made, and gets its name when it is whole."""


@dataclass(frozen=True)
class Kept:
    """One thing that is kept."""

    name: str
    size: int
    """In bytes."""
    used_at: float
    """In seconds since the epoch."""


def superfluous(kept: Iterable[Kept], limits: CacheLimits, now: float) -> Sequence[Kept]:
    """Return what is too old, and as much of the longest unused as is needed to get below the size."""
    by_use = sorted(kept, key=lambda one: one.used_at)
    left = sum(one.size for one in by_use)
    found = []
    for one in by_use:
        unused_s = now - one.used_at
        if unused_s > max(limits.age_s, GRACE_S) or (left > limits.size and unused_s > GRACE_S):
            found.append(one)
            left -= one.size
    return found


def evict_folders(parent: Path, pattern: str, limits: CacheLimits, folders: NamedLocks) -> int:
    """Remove superfluous folders of `parent`, whose own times say when they were used; return how many.

    One whose lock somebody has stays: it is being made or looked for.
    """
    _remove_unfinished(parent)
    kept = [Kept(path.name, disk_use(path), path.stat().st_mtime) for path in parent.glob(pattern) if path.is_dir()]
    count = 0
    for one in superfluous(kept, limits, time.time()):
        with contextlib.suppress(OSError), folders.if_free(one.name) as free:  # another process was quicker
            if free and (parent / one.name).stat().st_mtime <= one.used_at:  # and no task has taken it up since
                remove_folder(parent / one.name)
                count += 1
    return count


def evict_mirrors(parent: Path, limits: CacheLimits) -> int:
    """Remove superfluous mirrors below `parent`; return how many. One that is fetched into stays."""
    _remove_unfinished(parent)
    mirrors = [BareRepository(path) for path in parent.glob("*.git")]
    kept = {mirror.folder.name: mirror for mirror in mirrors if mirror.exists}
    sizes = []
    for name, mirror in kept.items():
        with contextlib.suppress(FileNotFoundError):  # removed meanwhile
            sizes.append(Kept(name, disk_use(mirror.folder), mirror.used_at))
    count = 0
    for one in superfluous(sizes, limits, time.time()):
        try:
            with kept[one.name].locked(timeout_s=0):
                if kept[one.name].used_at > one.used_at:  # a task has taken it up since it was looked at
                    continue
                remove_folder(kept[one.name].folder)
        except (CheckoutError, OSError):  # fetched into, or another machine that shares the folder was quicker
            continue
        count += 1
    return count


def tidy_mirrors(parent: Path, *, within_s: float) -> Sequence[str]:
    """Have the mirrors below `parent` packed anew where that is due, the longest unused last; the next time the rest.

    One that is fetched into is left alone. Returns what git could not do, as sentences.
    """
    untidy = []
    deadline = time.monotonic() + within_s
    mirrors = [mirror for path in parent.glob("*.git") if (mirror := BareRepository(path)).exists]
    for mirror in sorted(mirrors, key=lambda one: -one.used_at):
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            break
        try:
            mirror.tidy(left_s)
        except (RemoteUnavailable, OSError):  # or another machine that shares the folder was quicker
            continue
        except CheckoutError as error:
            untidy.append(f"{mirror.folder.name}: {error}")
    return untidy


def disk_use(folder: Path) -> int:
    """Return how many bytes a folder takes on the disk; what vanishes meanwhile takes none."""
    total = 0
    for parent, _, files in os.walk(folder):
        for name in files:
            try:
                total += (Path(parent) / name).lstat().st_blocks * 512
            except OSError:
                continue
    return total


def _remove_unfinished(parent: Path) -> None:
    """Remove what processes that were killed left half made or half removed; nobody else ever would."""
    for path in parent.glob(".*"):
        if path.name.endswith(DOOMED_SUFFIX) or (path.name.startswith(DRAFT_PREFIX) and _is_abandoned(path)):
            shutil.rmtree(path, ignore_errors=True)


def _is_abandoned(draft: Path) -> bool:
    try:
        # Not its time of modification, which a copied folder has from its original.
        return time.time() - draft.stat().st_ctime > GRACE_S
    except OSError:  # it has become what it was to be
        return False

"""How long a checkout takes of a large repository that was fetched before, and a set-up that is in the cache."""

import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from sandbox import setup_plan
from sandbox.checkout import Mirror
from sandbox.remotes import GitRemote
from sandbox.types import Backend, SandboxSpec

_FILES = 400
_MEGABYTE = 1_000_000


def measure_checkout(
    backend: Backend, spec: SandboxSpec, folder: Path, *, megabytes: int, rounds: int
) -> Mapping[str, list[float]]:
    """Return the seconds of a task's checkout: a commit that the mirror does not have yet is fetched and its tree
    written as an archive (`checkout`), which is then unpacked in a sandbox (`unpack`).

    The files are hexadecimal digits by chance: text that packs to half its size.
    """
    upstream = folder / "upstream"
    upstream.mkdir()
    _git(upstream, "init", "--quiet", "--initial-branch=main")
    for number in range(_FILES):
        path = upstream / f"folder{number % 20}" / f"file{number}.bin"
        path.parent.mkdir(exist_ok=True)
        path.write_text(os.urandom(megabytes * _MEGABYTE // _FILES // 2).hex())
    _commit(upstream)
    mirror = Mirror(folder / "mirror.git", allow_local=True)
    remote, ref = GitRemote(str(upstream)), "refs/heads/main"
    mirror.fetch(remote, [ref], timeout_s=600)
    mirror.archive(mirror.resolve(ref), folder / "first.tar")
    times: dict[str, list[float]] = {"checkout": [], "unpack": []}
    for number in range(rounds):
        (upstream / "changed.txt").write_text(f"{number}\n")
        _commit(upstream)
        archive = folder / "tree.tar"
        began = time.perf_counter()
        mirror.fetch(remote, [ref], timeout_s=60)
        mirror.archive(mirror.resolve(ref), archive)
        times["checkout"].append(time.perf_counter() - began)
        sandbox = backend.open(spec)
        try:
            began = time.perf_counter()
            sandbox.put_tree(archive)
            times["unpack"].append(time.perf_counter() - began)
        finally:
            sandbox.close()
    return times


def measure_setup(backend: Backend, archive: Path, labels: Mapping[str, str], *, rounds: int) -> list[float]:
    """Return the seconds until a set-up that was made before is found again: plan, key and image."""
    times = []
    for number in range(rounds + 1):
        began = time.perf_counter()
        plan = setup_plan.detect(archive, commands=None, base=backend.ensure_base(), shared_with="the bench")
        assert plan.commands
        backend.prepare(archive, plan, timeout_s=600, labels=labels)
        if number:  # the first one made it, perhaps
            times.append(time.perf_counter() - began)
    return times


def _commit(folder: Path) -> None:
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "--message", "A change")


def _git(folder: Path, *arguments: str) -> None:
    command = ["git", "-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "gc.auto=0"]
    command += ["-c", "core.compression=1", *arguments]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=120)

"""A mirror that a crash or a disk has damaged is made anew: it is only a cache, and nobody looks after it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox.checkout import Mirror
from sandbox.errors import CheckoutError, RemoteUnavailable
from sandbox.remotes import GitRemote
from tests.support.repositories import commit_files, git, make_repository


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    folder = tmp_path / "upstream"
    make_repository(folder, {"kept.txt": "kept\n" * 1000, "a.txt": "1"})
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "mirror.git"


@pytest.fixture
def mirror(folder: Path, upstream: Path) -> Mirror:
    made = Mirror(folder, allow_local=True)
    fetch(made, upstream)
    return made


def fetch(mirror: Mirror, upstream: Path) -> str:
    mirror.fetch(GitRemote(str(upstream)), ["refs/heads/main"], timeout_s=30)
    return mirror.resolve("refs/heads/main")


def refs(folder: Path) -> list[Path]:
    return [path for path in (folder / "refs").rglob("*") if path.is_file()]


def what_a_lost_power_leaves(folder: Path) -> None:
    for path in refs(folder):
        path.write_bytes(b"")


def what_a_killed_git_leaves(folder: Path) -> None:
    for path in refs(folder):
        path.with_name(f"{path.name}.lock").touch()


def an_empty_head(folder: Path) -> None:
    (folder / "HEAD").write_bytes(b"")


def a_strange_configuration(folder: Path) -> None:
    (folder / "config").write_bytes(b"\0\0\0")


@pytest.mark.parametrize(
    "damage", [what_a_lost_power_leaves, what_a_killed_git_leaves, an_empty_head, a_strange_configuration]
)
def test_the_next_fetch_mends_a_mirror(
    mirror: Mirror, folder: Path, upstream: Path, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    damage(folder)
    commit_files(upstream, {"a.txt": "2"})
    assert fetch(mirror, upstream) == git(upstream, "rev-parse", "main")
    mirror.archive(mirror.resolve("refs/heads/main"), tmp_path / "tree.tar")


@pytest.mark.parametrize("left", [b"", b"PACK", None], ids=["empty", "torn", "gone"])
def test_a_commit_of_which_a_part_is_damaged_is_fetched_again(
    mirror: Mirror, folder: Path, upstream: Path, tmp_path: Path, left: bytes | None
) -> None:
    """git would never fetch it: the commit is there."""
    packs = list((folder / "objects" / "pack").glob("*.pack"))
    commit_files(upstream, {"a.txt": "2"})
    sha = fetch(mirror, upstream)
    for pack in packs:
        pack.unlink()
        if left is not None:
            pack.write_bytes(left)
    assert mirror.has(sha)
    with pytest.raises(RemoteUnavailable, match="made anew"):
        mirror.archive(sha, tmp_path / "tree.tar")
    assert not mirror.has(sha)
    assert fetch(mirror, upstream) == sha
    mirror.archive(sha, tmp_path / "tree.tar")


def test_a_tree_that_says_what_git_says_of_damage_is_only_refused(
    mirror: Mirror, upstream: Path, tmp_path: Path
) -> None:
    blob = git(upstream, "rev-parse", "main:a.txt")
    inner = git(upstream, "mktree", stdin=f"100644 blob {blob}\tbad object\n")
    tree = git(upstream, "mktree", stdin=f"040000 tree {inner}\t..\n")
    sha = git(upstream, "commit-tree", tree, "-m", "hostile")
    git(upstream, "update-ref", "refs/heads/main", sha)
    fetch(mirror, upstream)
    with pytest.raises(CheckoutError, match="outside of the tree") as refused:
        mirror.archive(sha, tmp_path / "tree.tar")
    assert not isinstance(refused.value, RemoteUnavailable)
    assert mirror.has(sha)

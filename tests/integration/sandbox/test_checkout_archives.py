"""A commit's archive is made from the one before it, and is the same as one that is made from nothing."""

import os
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from sandbox import kept_archive, submodules, tree_archives
from sandbox.bare import BareRepository
from sandbox.checkout import Mirror
from sandbox.errors import CheckoutError
from sandbox.remotes import GitRemote
from tests.support.repositories import git, make_repository

PATCH = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\n+patched\n"
LONG = "/".join(["a-folder-with-a-long-name"] * 6)


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    folder = tmp_path / "upstream"
    files = {
        "a.txt": "a\n",
        "b/c.txt": "c\n",
        "b/d.txt": "d\n",
        f"{LONG}/e.txt": "e\n",
        "run.sh": "true\n",
        "z": "z" * 700,
    }
    make_repository(folder, files, links={"link": f"{LONG}/e.txt"})
    return folder


@pytest.fixture
def mirror(tmp_path: Path, upstream: Path) -> Mirror:
    return Mirror(tmp_path / "mirror.git", allow_local=True)


def newest(mirror: Mirror, upstream: Path) -> str:
    mirror.fetch(GitRemote(str(upstream)), ["refs/heads/main"], timeout_s=30)
    return mirror.resolve("refs/heads/main")


def archived(mirror: Mirror, treeish: str, path: Path) -> bytes:
    mirror.archive(treeish, path)
    return path.read_bytes()


def change_everything(upstream: Path) -> None:
    (upstream / "a.txt").write_text("longer than before\n" * 100)
    (upstream / "b" / "c.txt").unlink()
    (upstream / "b" / "d.txt").rename(upstream / "b" / "renamed.txt")
    (upstream / "run.sh").chmod(0o755)
    (upstream / "link").unlink()
    (upstream / "link").symlink_to("a.txt")
    (upstream / os.fsdecode(b"caf\xe9")).write_bytes(b"\xff\x00")
    (upstream / "z").unlink()
    (upstream / "z").mkdir()
    (upstream / "z" / "empty").touch()
    git(upstream, "add", "--all")
    submodule = f"160000,{'1' * 40},vendored"
    git(upstream, "update-index", "--add", "--cacheinfo", submodule)
    git(upstream, "commit", "--quiet", "--message", "everything")


def test_the_next_commits_archive_is_what_it_would_be_alone(mirror: Mirror, upstream: Path, tmp_path: Path) -> None:
    first = newest(mirror, upstream)
    before = archived(mirror, first, tmp_path / "tree.tar")
    change_everything(upstream)
    second = newest(mirror, upstream)
    after = archived(mirror, second, tmp_path / "tree.tar")
    alone = Mirror(tmp_path / "alone.git", allow_local=True)
    newest(alone, upstream)
    assert after == archived(alone, second, tmp_path / "alone.tar")
    assert archived(mirror, first, tmp_path / "tree.tar") == before


def test_an_archive_holds_what_git_has(mirror: Mirror, upstream: Path, tmp_path: Path) -> None:
    archived(mirror, newest(mirror, upstream), tmp_path / "first.tar")
    change_everything(upstream)
    archived(mirror, newest(mirror, upstream), tmp_path / "tree.tar")
    with tarfile.open(tmp_path / "tree.tar") as tar:
        modes = {member.name: (member.isdir(), member.mode, member.linkname) for member in tar}
    assert modes["run.sh"] == (False, 0o755, "")
    assert modes["link"] == (False, 0o777, "a.txt")
    assert modes["vendored"] == (True, 0o755, "")
    (tmp_path / "unpacked").mkdir()
    subprocess.run(["tar", "-xf", tmp_path / "tree.tar", "-C", tmp_path / "unpacked"], check=True)
    (tmp_path / "unpacked" / "vendored").rmdir()
    git(upstream, "rm", "--quiet", "--cached", "vendored")
    assert git(upstream, f"--work-tree={tmp_path / 'unpacked'}", "status", "--porcelain") == "D  vendored"


def test_the_same_tree_is_not_made_twice(
    mirror: Mirror, upstream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha = newest(mirror, upstream)
    first = archived(mirror, sha, tmp_path / "first.tar")
    monkeypatch.setattr(tree_archives, "_assemble", None)
    assert archived(mirror, sha, tmp_path / "second.tar") == first
    (tmp_path / "second.tar").unlink()
    assert archived(mirror, sha, tmp_path / "first.tar") == first


def test_a_patched_tree_is_made_from_its_base_which_stays(
    mirror: Mirror, upstream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha = newest(mirror, upstream)
    archived(mirror, sha, tmp_path / "base.tar")
    tree = mirror.tree_with_patch(sha, PATCH)
    archived(mirror, tree, tmp_path / "patched.tar")
    with tarfile.open(tmp_path / "patched.tar") as tar:
        file = tar.extractfile("a.txt")
        assert file is not None
        assert file.read() == b"patched\n"
    monkeypatch.setattr(tree_archives, "_assemble", None)
    archived(mirror, sha, tmp_path / "again.tar")


@pytest.mark.parametrize("harm", ["shortened", "gone", "nonsense", "of an earlier start"])
def test_a_kept_archive_that_cannot_be_trusted_is_not_used(
    mirror: Mirror, upstream: Path, tmp_path: Path, harm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha = newest(mirror, upstream)
    whole = archived(mirror, sha, tmp_path / "tree.tar")
    (tmp_path / "tree.tar").unlink()
    (kept,) = (tmp_path / "mirror.git").rglob("*.tar")
    match harm:
        case "shortened":
            kept.write_bytes(whole[:1000])
        case "gone":
            kept.unlink()
        case "nonsense":
            kept.write_bytes(b"\x01" * len(whole))
            kept.with_suffix(".places").write_bytes(b"nonsense")
        case _:
            kept.write_bytes(b"\x01" * len(whole))
            monkeypatch.setattr(kept_archive, "_BOOT_ID", tmp_path / "tree.tar.lock")
    assert archived(mirror, sha, tmp_path / "tree.tar") == whole


def test_a_tree_of_too_many_files_is_refused(
    mirror: Mirror, upstream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree_archives, "_MOST_ENTRIES", 5)
    with pytest.raises(CheckoutError, match="more than 5 files and folders"):
        mirror.archive(newest(mirror, upstream), tmp_path / "tree.tar")


def test_an_archive_that_cannot_be_kept_is_written_all_the_same(mirror: Mirror, upstream: Path, tmp_path: Path) -> None:
    sha = newest(mirror, upstream)
    (tmp_path / "mirror.git" / "acrouter-archive").touch()  # where the folder would be
    assert archived(mirror, sha, tmp_path / "tree.tar")
    assert archived(mirror, sha, tmp_path / "again.tar") == (tmp_path / "tree.tar").read_bytes()


def raw_tree(upstream: Path, *lines: str) -> str:
    done = subprocess.run(
        ["git", "mktree", "-z"], cwd=upstream, input="\0".join(lines).encode() + b"\0", check=True, capture_output=True
    )
    return done.stdout.decode().strip()


def asked_of_git(monkeypatch: pytest.MonkeyPatch) -> list[tuple[tuple[str, ...], bytes]]:
    """Return what git is asked from now on, as it grows: its arguments and its stdin."""
    asked: list[tuple[tuple[str, ...], bytes]] = []
    run = BareRepository.git

    def noted(self: BareRepository, *arguments: str, stdin: bytes = b"", **options: Any) -> bytes:
        asked.append((arguments, stdin))
        return run(self, *arguments, stdin=stdin, **options)

    monkeypatch.setattr(BareRepository, "git", noted)
    return asked


def commit_tree(upstream: Path, tree: str) -> None:
    sha = git(upstream, "commit-tree", tree, "-m", "raw")
    git(upstream, "update-ref", "refs/heads/main", sha)


def test_a_small_repository_that_names_one_file_again_and_again_is_refused_before_anything_is_written(
    upstream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (upstream / "large").write_bytes(bytes(300_000))
    git(upstream, "add", "large")
    blob = git(upstream, "rev-parse", ":large")
    commit_tree(upstream, raw_tree(upstream, *(f"100644 blob {blob}\t{number:02}" for number in range(40))))
    mirror = Mirror(tmp_path / "mirror.git", allow_local=True, largest_tree=10 << 20)
    sha = newest(mirror, upstream)
    asked = asked_of_git(monkeypatch)
    with pytest.raises(CheckoutError, match="holds 11 MB of files, more than the 10 MB"):
        mirror.archive(sha, tmp_path / "tree.tar")
    assert [words for words, _ in asked if "--batch" in words] == []
    assert not (tmp_path / "tree.tar").exists()
    assert [path.name for path in tmp_path.glob(".acrouter*")] == []


def test_a_file_of_many_names_is_asked_for_once_and_stands_under_each(
    upstream: Path, mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in {"1": "same\n" * 99, "2": "other\n", "3": "same\n" * 99, "4": "last\n", "5": "other\n"}.items():
        (upstream / name).write_text(text)
    git(upstream, "add", "--all")
    git(upstream, "commit", "--quiet", "--message", "The same again")
    sha = newest(mirror, upstream)
    asked = asked_of_git(monkeypatch)
    mirror.archive(sha, tmp_path / "tree.tar")
    (wanted,) = (stdin.split() for words, stdin in asked if "--batch" in words)
    assert len(wanted) == len(set(wanted))
    with tarfile.open(tmp_path / "tree.tar") as tar:
        for name in "12345":
            file = tar.extractfile(name)
            assert file is not None
            assert file.read() == (upstream / name).read_bytes()


def test_what_is_copied_from_the_last_archive_counts_too(upstream: Path, tmp_path: Path) -> None:
    mirror = Mirror(tmp_path / "mirror.git", allow_local=True, largest_tree=1 << 20)
    (upstream / "first").write_bytes(os.urandom(600_000))
    git(upstream, "add", "--all")
    git(upstream, "commit", "--quiet", "--message", "It fits")
    mirror.archive(newest(mirror, upstream), tmp_path / "tree.tar")
    (upstream / "second").write_bytes(os.urandom(600_000))
    git(upstream, "add", "--all")
    git(upstream, "commit", "--quiet", "--message", "It does not")
    with pytest.raises(CheckoutError, match="more than the 1 MB that a sandbox has for it"):
        mirror.archive(newest(mirror, upstream), tmp_path / "tree.tar")


def test_a_link_to_no_possible_path_is_refused(mirror: Mirror, upstream: Path, tmp_path: Path) -> None:
    blob = git(upstream, "hash-object", "-w", "--stdin", stdin="x" * 5000)
    commit_tree(upstream, raw_tree(upstream, f"120000 blob {blob}\tlink"))
    with pytest.raises(CheckoutError, match="'link' is a link to a path of 5,000 bytes"):
        mirror.archive(newest(mirror, upstream), tmp_path / "tree.tar")


@pytest.mark.parametrize("name", ["..", ".git", ".GIT"])
def test_a_tree_with_a_path_that_leaves_it_is_refused(
    mirror: Mirror, upstream: Path, tmp_path: Path, name: str
) -> None:
    blob = git(upstream, "rev-parse", "HEAD:a.txt")
    inner = raw_tree(upstream, f"100644 blob {blob}\tx")
    commit_tree(upstream, raw_tree(upstream, f"040000 tree {inner}\t{name}"))
    with pytest.raises(CheckoutError, match="The archive has a path"):
        mirror.archive(newest(mirror, upstream), tmp_path / "tree.tar")


def test_a_tree_that_writes_through_its_own_link_is_refused(mirror: Mirror, upstream: Path, tmp_path: Path) -> None:
    blob = git(upstream, "rev-parse", "HEAD:a.txt")
    inner = raw_tree(upstream, f"100644 blob {blob}\tx")
    commit_tree(upstream, raw_tree(upstream, f"120000 blob {blob}\ta", f"040000 tree {inner}\ta"))
    with pytest.raises(CheckoutError, match="link of its own"):
        mirror.archive(newest(mirror, upstream), tmp_path / "tree.tar")


def test_a_tree_without_end_is_cut(
    mirror: Mirror, upstream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blob = git(upstream, "rev-parse", "HEAD:a.txt")
    tree = raw_tree(upstream, *(f"100644 blob {blob}\t{number}" for number in range(10)))
    for _ in range(8):  # a billion files in nine objects
        tree = raw_tree(upstream, *(f"040000 tree {tree}\t{number}" for number in range(10)))
    commit_tree(upstream, tree)
    for module in (tree_archives, submodules):
        monkeypatch.setattr(module, "LISTING_LIMIT", 1 << 20)
    sha = newest(mirror, upstream)
    with pytest.raises(CheckoutError, match="more than 1 MB"):
        mirror.archive(sha, tmp_path / "tree.tar")
    with pytest.raises(CheckoutError, match="more than 1 MB"):
        mirror.fetch_submodules(GitRemote(str(upstream)), sha, timeout_s=30)
    assert [path.name for path in tmp_path.glob(".acrouter*")] == []

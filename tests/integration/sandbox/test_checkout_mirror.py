"""A mirror takes commits in, makes new ones, and pushes them, without a worktree."""

import random
import tarfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sandbox.checkout import Mirror
from sandbox.errors import CheckoutError, PatchError, PushError
from sandbox.remotes import Author, GitRemote
from tests.support.repositories import commit_files, git, make_repository

ADA = Author("acrouter[bot]", "1+acrouter[bot]@users.noreply.github.com")
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
PATCH = """\
diff --git a/greet.py b/greet.py
--- a/greet.py
+++ b/greet.py
@@ -1,3 +1,3 @@
 def greet(name):
-    return "Hullo " + name
+    return "Hello " + name

"""


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    folder = tmp_path / "upstream"
    make_repository(folder, {"greet.py": 'def greet(name):\n    return "Hullo " + name\n\n# end\n', "a/b.txt": "b\n"})
    return folder


@pytest.fixture
def mirror(tmp_path: Path, upstream: Path) -> Mirror:
    made = Mirror(tmp_path / "mirror.git", allow_local=True)
    made.fetch(GitRemote(str(upstream)), ["refs/heads/main"], timeout_s=30)
    return made


def content(archive: Path) -> dict[str, str]:
    with tarfile.open(archive) as tar:
        return {
            member.name: file.read().decode()
            for member in tar
            if member.isfile() and (file := tar.extractfile(member)) is not None
        }


def test_a_commit_becomes_an_archive_of_its_exact_tree(mirror: Mirror, upstream: Path, tmp_path: Path) -> None:
    sha = mirror.resolve("refs/heads/main")
    mirror.archive(sha, tmp_path / "tree.tar")
    assert sha == git(upstream, "rev-parse", "main")
    assert content(tmp_path / "tree.tar") == {
        "greet.py": 'def greet(name):\n    return "Hullo " + name\n\n# end\n',
        "a/b.txt": "b\n",
    }


def test_a_branch_whose_place_a_folder_of_branches_took_is_in_nobodys_way(mirror: Mirror, upstream: Path) -> None:
    remote = GitRemote(str(upstream))
    git(upstream, "branch", "feature")
    mirror.fetch(remote, ["refs/heads/feature"], timeout_s=30)
    git(upstream, "branch", "--delete", "feature")
    later = commit_files(upstream, {"later.txt": "later\n"})
    git(upstream, "branch", "feature/a")
    mirror.fetch(remote, ["refs/heads/feature/a"], timeout_s=30)
    assert mirror.resolve("refs/heads/feature/a") == later
    git(upstream, "branch", "--delete", "feature/a")
    git(upstream, "branch", "feature")
    mirror.fetch(remote, ["refs/heads/feature"], timeout_s=30)
    assert mirror.resolve("refs/heads/feature") == later


def test_a_patch_becomes_a_commit_that_is_pushed(mirror: Mirror, upstream: Path, tmp_path: Path) -> None:
    base = mirror.resolve("refs/heads/main")
    tree = mirror.tree_with_patch(base, PATCH)
    sha = mirror.commit(tree, base, "Say hello\n\nFixes it.", ADA, NOON)
    mirror.push(GitRemote(str(upstream)), sha, "acrouter/issue-1", expected=None)
    assert git(upstream, "rev-parse", "acrouter/issue-1") == sha
    assert git(upstream, "show", "acrouter/issue-1:greet.py").splitlines()[1] == '    return "Hello " + name'
    assert git(upstream, "log", "-1", "--format=%an %ae %ct", sha) == f"{ADA.name} {ADA.email} {int(NOON.timestamp())}"
    assert mirror.diff(base, sha).splitlines()[0] == "diff --git a/greet.py b/greet.py"


def test_the_same_commit_made_twice_is_one(mirror: Mirror) -> None:
    base = mirror.resolve("refs/heads/main")
    tree = mirror.tree_with_patch(base, PATCH)
    assert mirror.commit(tree, base, "x", ADA, NOON) == mirror.commit(tree, base, "x", ADA, NOON)


def test_a_diff_with_other_bytes_goes_round(mirror: Mirror, upstream: Path) -> None:
    before = mirror.resolve("refs/heads/main")
    (upstream / "latin.txt").write_bytes(b"caf\xe9\r\nline\r\n")
    (upstream / "image.bin").write_bytes(bytes(range(256)))
    after = commit_files(upstream, {"a/b.txt": "other\n"})
    mirror.fetch(GitRemote(str(upstream)), ["refs/heads/main"], timeout_s=30)
    tree = mirror.tree_with_patch(before, mirror.diff(before, after))
    assert tree == git(upstream, "rev-parse", f"{after}^{{tree}}")


def test_a_patch_for_an_older_state_is_merged(mirror: Mirror, upstream: Path) -> None:
    base = mirror.resolve("refs/heads/main")
    patch = mirror.diff(base, mirror.tree_with_patch(base, PATCH))
    commit_files(upstream, {"greet.py": '# moved down\n\n\n\ndef greet(name):\n    return "Hullo " + name\n\n# end\n'})
    mirror.fetch(GitRemote(str(upstream)), ["refs/heads/main"], timeout_s=30)
    tree = mirror.tree_with_patch(mirror.resolve("refs/heads/main"), patch)
    mirror_file = git(upstream, "--git-dir", str(upstream.parent / "mirror.git"), "cat-file", "-p", f"{tree}:greet.py")
    assert '    return "Hello " + name' in mirror_file.splitlines()


def test_a_patch_that_does_not_fit_is_refused(mirror: Mirror) -> None:
    with pytest.raises(PatchError, match="does not apply"):
        mirror.tree_with_patch(mirror.resolve("refs/heads/main"), PATCH.replace("Hullo", "Howdy"))


def test_an_empty_patch_is_refused(mirror: Mirror) -> None:
    with pytest.raises(PatchError, match="empty"):
        mirror.tree_with_patch(mirror.resolve("refs/heads/main"), "\n")


def test_a_push_never_replaces_a_foreign_commit(mirror: Mirror, upstream: Path) -> None:
    remote = GitRemote(str(upstream))
    base = mirror.resolve("refs/heads/main")
    ours = mirror.commit(mirror.tree_with_patch(base, PATCH), base, "ours", ADA, NOON)
    mirror.push(remote, ours, "fix", expected=None)
    git(upstream, "checkout", "--quiet", "fix")
    theirs = commit_files(upstream, {"new.txt": "theirs\n"})
    git(upstream, "checkout", "--quiet", "main")
    again = mirror.commit(mirror.tree_with_patch(base, PATCH), base, "ours again", ADA, NOON)
    for expected in (None, ours):
        with pytest.raises(PushError, match="somebody else"):
            mirror.push(remote, again, "fix", expected=expected)
    assert mirror.remote_head(remote, "fix") == theirs


def test_a_push_repeated_after_a_crash_is_no_error(mirror: Mirror, upstream: Path) -> None:
    remote = GitRemote(str(upstream))
    base = mirror.resolve("refs/heads/main")
    ours = mirror.commit(mirror.tree_with_patch(base, PATCH), base, "ours", ADA, NOON)
    mirror.push(remote, ours, "fix", expected=None)
    mirror.push(remote, ours, "fix", expected=None)
    newer = mirror.commit(mirror.tree_with_patch(base, PATCH), base, "newer", ADA, NOON)
    mirror.push(remote, newer, "fix", expected=ours)
    assert mirror.remote_head(remote, "fix") == newer
    assert mirror.remote_head(remote, "nobody") is None


def test_a_known_sha_needs_no_network(mirror: Mirror, upstream: Path, tmp_path: Path) -> None:
    sha = mirror.resolve("refs/heads/main")
    upstream.rename(tmp_path / "gone")
    mirror.fetch(GitRemote(str(upstream)), [sha], timeout_s=5)
    with pytest.raises(CheckoutError):
        mirror.fetch(GitRemote(str(upstream)), ["refs/heads/main"], timeout_s=5)


def test_a_persons_repository_is_read_and_left_as_it_is(upstream: Path, tmp_path: Path) -> None:
    (upstream / "greet.py").write_text("changed\n", encoding="utf-8")
    (upstream / "new.txt").write_text("new\n", encoding="utf-8")
    taken = Mirror.from_local(upstream, tmp_path / "local.git")
    assert taken.head_sha == git(upstream, "rev-parse", "HEAD")
    assert taken.branch == "refs/heads/main"
    assert sorted(taken.uncommitted) == ["greet.py", "new.txt"]
    taken.mirror.archive(taken.head_sha, tmp_path / "tree.tar")
    assert "Hullo" in content(tmp_path / "tree.tar")["greet.py"]
    assert sorted(git(upstream, "status", "--porcelain").split()) == ["??", "M", "greet.py", "new.txt"]


def test_a_clean_repository_has_nothing_uncommitted(upstream: Path, tmp_path: Path) -> None:
    git(upstream, "worktree", "add", "--quiet", "--detach", str(tmp_path / "second"))
    assert Mirror.from_local(upstream, tmp_path / "local.git").uncommitted == []
    second = Mirror.from_local(tmp_path / "second", tmp_path / "second.git")
    assert (second.branch, second.uncommitted) == ("", [])


def test_a_folder_without_a_repository_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckoutError, match="is not a git repository"):
        Mirror.from_local(tmp_path, tmp_path / "mirror.git")


def test_a_repository_without_a_commit_is_named(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    with pytest.raises(CheckoutError, match="no commit yet"):
        Mirror.from_local(tmp_path, tmp_path / "mirror.git")


def test_a_history_that_is_too_large_is_refused_and_leaves_nothing(tmp_path: Path, upstream: Path) -> None:
    commit_files(upstream, {"large": random.Random(0).randbytes(100_000).hex()})
    small = Mirror(tmp_path / "small.git", allow_local=True, largest_pack=20_000)
    with pytest.raises(CheckoutError, match=r"takes more than 0 MB\. Who runs acrouter can raise ACROUTER_CACHE_GB"):
        small.fetch(GitRemote(str(upstream)), ["refs/heads/main"], timeout_s=30)
    assert [path.name for path in (tmp_path / "small.git" / "objects" / "pack").iterdir()] == []


def test_what_a_killed_fetch_has_left_goes_with_the_next_one(mirror: Mirror, upstream: Path, tmp_path: Path) -> None:
    left = tmp_path / "mirror.git" / "objects" / "pack" / "tmp_pack_killed"
    left.write_bytes(b"PACK")
    commit_files(upstream, {"new.txt": "new\n"})
    mirror.fetch(GitRemote(str(upstream)), ["refs/heads/main"], timeout_s=30)
    assert not left.exists()
    assert mirror.resolve("refs/heads/main") == git(upstream, "rev-parse", "main")

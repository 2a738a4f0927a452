"""The bare repositories of both GitHubs: commits, merges and diffs are git's own."""

import os
from pathlib import Path

import pytest

from bot.demo.hub.git import BareRepository, HubGitError, Identity, MergeConflictError
from tests.integration.github.conftest import git

ADA = Identity("Ada Dev", "ada@example.com")


@pytest.fixture
def bare(tmp_path: Path, source: Path) -> BareRepository:
    return BareRepository.copy_of(source, tmp_path / "copy.git")


def test_a_copy_has_the_same_heads(bare: BareRepository, source: Path) -> None:
    assert bare.default_branch() == "trunk"
    assert bare.branches() == {"trunk": git(source, "rev-parse", "HEAD")}
    first = bare.commit(bare.commit(bare.branches()["trunk"]).parents[0])
    assert (first.message, first.parents, first.author) == ("The first commit\n\nWith a body.\n", (), ADA)


def test_files_are_committed_changed_and_removed(bare: BareRepository) -> None:
    sha = bare.commit_files("work", {"new/file.txt": "new\n", "README.md": None, "logo.bin": b"\0\1"}, "Change", ADA)
    assert bare.branches()["work"] == sha
    changes = {file.path: (file.status, file.additions, file.deletions) for file in bare.changed_files("trunk", "work")}
    assert changes == {
        "new/file.txt": ("added", 1, 0),
        "README.md": ("removed", 0, 1),
        "logo.bin": ("modified", 0, 0),
    }
    assert bare.file("work", "new/file.txt") == b"new\n"
    assert bare.file("work", "README.md") is None
    assert bare.file("work", "new") is None


def test_a_script_stays_executable(bare: BareRepository) -> None:
    sha = bare.commit_files("work", {"run.sh": "#!/bin/sh\ntrue\n"}, "Change the script", ADA)
    assert git(bare.path, "ls-tree", sha, "run.sh").startswith("100755 blob")


def test_a_merge_has_both_parents_and_a_conflict_changes_nothing(bare: BareRepository) -> None:
    before = bare.branches()["trunk"]
    one = bare.commit_files("one", {"README.md": "# One\n"}, "One", ADA)
    two = bare.commit_files("two", {"README.md": "# Two\n"}, "Two", ADA)
    merged = bare.merge("trunk", one, "Merge one", ADA)
    assert bare.commit(merged).parents == (before, one)
    with pytest.raises(MergeConflictError):
        bare.merge("trunk", two, "Merge two", ADA)
    assert bare.branches()["trunk"] == merged


@pytest.mark.parametrize("ref", ["--output=/tmp/x", "-h", "no-such-branch", "HEAD:README.md", "trunk..trunk", ""])
def test_a_ref_from_outside_is_only_ever_a_ref(bare: BareRepository, ref: str) -> None:
    assert bare.resolve(ref) is None
    assert bare.file(ref, "README.md") is None


@pytest.mark.parametrize("path", ["../../etc/passwd", "/etc/passwd", ":(top)README.md", "widget/../README.md"])
def test_a_path_from_outside_stays_in_the_tree(bare: BareRepository, path: str) -> None:
    assert bare.file("trunk", path) is None


def test_hooks_and_configuration_of_the_host_are_not_used(
    bare: BareRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = tmp_path / "ran"
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("post-merge", "pre-merge-commit", "pre-push", "post-checkout"):
        (hooks / name).write_text(f"#!/bin/sh\necho {name} >> {trace}\n", encoding="utf-8")
        (hooks / name).chmod(0o755)
    (tmp_path / ".gitconfig").write_text(f"[core]\n\thooksPath = {hooks}\n", encoding="utf-8")
    monkeypatch.setitem(os.environ, "HOME", str(tmp_path))
    bare.merge("trunk", bare.commit_files("one", {"a.txt": "a\n"}, "One", ADA), "Merge", ADA)
    assert not trace.exists()


def test_a_bad_branch_name_is_refused(bare: BareRepository) -> None:
    for name in ("../../config", "a..b", "a b", ""):
        with pytest.raises(HubGitError):
            bare.set_branch(name, bare.branches()["trunk"])

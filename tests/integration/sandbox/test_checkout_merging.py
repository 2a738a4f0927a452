"""A change comes from the commit that it was made on to a later one whole, as it was made, or not at all."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from sandbox import trees
from sandbox.checkout import Mirror
from sandbox.errors import CheckoutError, PatchError
from sandbox.remotes import GitRemote
from tests.support.repositories import commit_files, git, make_repository

LINES = "".join(f"{number}\n" for number in range(1, 31))
FIXED = LINES.replace("20\n", "twenty\n")


class Upstream:
    """A repository in which somebody's change was made on the first commit while its main branch went on."""

    def __init__(self, folder: Path, files: Mapping[str, str]) -> None:
        self.folder, self._mirror = folder / "upstream", folder / "mirror.git"
        self.base = make_repository(self.folder, files)

    def change(self, files: Mapping[str, str], links: Mapping[str, str] | None = None) -> str:
        """Return the tree of a change that was made on the first commit."""
        return git(self.folder, "rev-parse", f"{self._on_the_base('change', files, links)}^{{tree}}")

    def go_on(self, files: Mapping[str, str], links: Mapping[str, str] | None = None) -> str:
        return self._on_the_base("main", files, links)

    def mirror(self) -> Mirror:
        made = Mirror(self._mirror, allow_local=True)
        branches = git(self.folder, "for-each-ref", "--format=%(refname)", "refs/heads").splitlines()
        made.fetch(GitRemote(str(self.folder)), branches, timeout_s=30)
        return made

    def read(self, tree: str, path: str) -> str:
        return git(self.folder, "--git-dir", str(self._mirror), "cat-file", "-p", f"{tree}:{path}")

    def listing(self, tree: str) -> dict[str, str]:
        """Modes and kinds by path."""
        lines = git(self.folder, "--git-dir", str(self._mirror), "ls-tree", "-r", tree).splitlines()
        return {line.split("\t")[1]: line.split(" ")[0] for line in lines}

    def _on_the_base(self, branch: str, files: Mapping[str, str], links: Mapping[str, str] | None) -> str:
        git(self.folder, "checkout", "--quiet", "-B", branch, self.base)
        return commit_files(self.folder, files, links)


def test_a_change_stands_beside_what_came_later(tmp_path: Path) -> None:
    upstream = Upstream(tmp_path, {"a.txt": LINES, "b.txt": "b\n"})
    tree = upstream.change({"a.txt": FIXED, "new.txt": "new\n"})
    later = upstream.go_on({"a.txt": f"zero\n{LINES}", "b.txt": "other\n"})
    mirror = upstream.mirror()
    merged = mirror.merged_tree(upstream.base, tree, later)
    assert upstream.read(merged, "a.txt") == f"zero\n{FIXED}".strip()
    assert upstream.read(merged, "b.txt") == "other"
    assert upstream.read(merged, "new.txt") == "new"
    assert mirror.merged_tree(upstream.base, tree, later) == merged, "the same again"


def test_of_two_places_that_look_alike_the_change_goes_to_its_own(tmp_path: Path) -> None:
    block = "def f():\n    x = 1\n    y = 2\n    z = 3\n    return x\n\n\n"
    upstream = Upstream(tmp_path, {"a.py": block})
    tree = upstream.change({"a.py": block.replace("z = 3", "z = 4")})
    later = upstream.go_on({"a.py": f"{block}# the first one is new\n{block}"})
    merged = upstream.mirror().merged_tree(upstream.base, tree, later)
    told = upstream.read(merged, "a.py")
    assert (told.count("z = 3"), told.count("z = 4")) == (1, 1)


@pytest.mark.parametrize(
    "later",
    [{"a.txt": LINES.replace("20\n", "XX\n")}, {"a.txt": LINES.replace("21\n", "XXI\n")}, {"new.txt": "another\n"}],
    ids=["the same line", "the next line", "a new file of that name"],
)
def test_a_change_that_conflicts_is_refused(tmp_path: Path, later: Mapping[str, str]) -> None:
    upstream = Upstream(tmp_path, {"a.txt": LINES})
    tree, sha = upstream.change({"a.txt": FIXED, "new.txt": "new\n"}), upstream.go_on(later)
    with pytest.raises(PatchError, match="conflicts"):
        upstream.mirror().merged_tree(upstream.base, tree, sha)


@pytest.mark.parametrize("edited", [False, True])
@pytest.mark.parametrize("renamed_to", ["b.txt", ".github/workflows/ci.yml", ""])
def test_a_change_of_a_file_that_was_renamed_or_deleted_is_refused(
    tmp_path: Path, renamed_to: str, edited: bool
) -> None:
    upstream = Upstream(tmp_path, {"a.txt": LINES, "other.txt": "x\n"})
    tree = upstream.change({"a.txt": FIXED})
    git(upstream.folder, "checkout", "--quiet", "-B", "main", upstream.base)
    git(upstream.folder, "rm", "--quiet", "a.txt")
    later = commit_files(upstream.folder, {renamed_to or "other.txt": f"zero\n{LINES}" if edited else LINES})
    with pytest.raises(PatchError, match=r"other files|conflicts"):
        upstream.mirror().merged_tree(upstream.base, tree, later)


def test_a_change_that_is_there_already_gives_the_later_tree(tmp_path: Path) -> None:
    upstream = Upstream(tmp_path, {"a.txt": LINES, "b.txt": "b\n"})
    tree = upstream.change({"a.txt": FIXED})
    later = upstream.go_on({"a.txt": FIXED, "b.txt": "other\n"})
    mirror = upstream.mirror()
    assert mirror.merged_tree(upstream.base, tree, later) == mirror.tree_of(later)


def test_a_change_that_is_there_in_part_is_refused(tmp_path: Path) -> None:
    upstream = Upstream(tmp_path, {"a.txt": LINES, "b.txt": "b\n"})
    tree = upstream.change({"a.txt": FIXED, "b.txt": "fixed\n"})
    later = upstream.go_on({"a.txt": FIXED})
    with pytest.raises(PatchError, match="in part"):
        upstream.mirror().merged_tree(upstream.base, tree, later)


def test_modes_links_and_submodules_come_out_as_on_either_side(tmp_path: Path) -> None:
    upstream = Upstream(tmp_path, {"run.sh": "echo\n", "a.txt": LINES})
    git(upstream.folder, "update-index", "--add", "--cacheinfo", f"160000,{'a' * 40},part")
    git(upstream.folder, "commit", "--quiet", "--amend", "--message", "With a part")
    upstream.base = git(upstream.folder, "rev-parse", "HEAD")

    def with_part(branch: str, part: str) -> str:
        git(upstream.folder, "update-index", "--add", "--cacheinfo", f"160000,{part * 40},part")
        git(upstream.folder, "commit", "--quiet", "--amend", "--message", branch)
        return git(upstream.folder, "rev-parse", "HEAD")

    git(upstream.folder, "checkout", "--quiet", "-B", "change", upstream.base)
    (upstream.folder / "run.sh").chmod(0o755)
    commit_files(upstream.folder, {"a.txt": FIXED}, {"ours": "/etc/passwd"})
    tree = f"{with_part('change', 'a')}^{{tree}}"
    git(upstream.folder, "checkout", "--quiet", "-B", "main", upstream.base)
    commit_files(upstream.folder, {"b.txt": "b\n"}, {"theirs": "/etc/hosts"})
    later = with_part("main", "b")
    merged = upstream.mirror().merged_tree(upstream.base, git(upstream.folder, "rev-parse", tree), later)
    assert upstream.listing(merged) == {
        "a.txt": "100644",
        "b.txt": "100644",
        "run.sh": "100755",
        "ours": "120000",
        "theirs": "120000",
        "part": "160000",
    }
    assert upstream.read(merged, "ours") == "/etc/passwd"


ATTRIBUTES = ["* merge=union\n", "* merge=evil filter=evil diff=evil\n", "* text eol=crlf ident\n"]


@pytest.mark.parametrize("attributes", ATTRIBUTES)
def test_attributes_do_not_settle_a_conflict(tmp_path: Path, attributes: str) -> None:
    upstream = Upstream(tmp_path, {".gitattributes": attributes, "a.txt": LINES})
    tree = upstream.change({"a.txt": FIXED})
    later = upstream.go_on({"a.txt": LINES.replace("20\n", "XX\n")})
    with pytest.raises(PatchError, match="conflicts"):
        upstream.mirror().merged_tree(upstream.base, tree, later)


@pytest.mark.parametrize("attributes", [*ATTRIBUTES, "* -merge -text -diff\n", "* conflict-marker-size=0 binary\n"])
def test_attributes_do_not_change_what_is_merged(tmp_path: Path, attributes: str) -> None:
    lines = LINES.replace("2\n", "$Id$\n", 1)
    upstream = Upstream(tmp_path, {".gitattributes": attributes, "a.txt": lines})
    tree = upstream.change({"a.txt": lines.replace("20\n", "twenty\n")})
    later = upstream.go_on({"a.txt": f"zero\n{lines}"})
    merged = upstream.mirror().merged_tree(upstream.base, tree, later)
    blob = git(upstream.folder, "show", f"{later}:a.txt")
    assert upstream.read(merged, "a.txt") == blob.replace("20\n", "twenty\n")


def test_a_driver_that_a_person_configured_on_the_host_does_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary = tmp_path / "canary"
    (tmp_path / ".gitconfig").write_text(f'[merge "evil"]\n\tdriver = touch {canary}\n[merge]\n\tdefault = evil\n')
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / ".gitconfig"))
    assert os.environ["HOME"] == str(tmp_path)
    upstream = Upstream(tmp_path, {".gitattributes": "* merge=evil\n", "a.txt": LINES})
    tree = upstream.change({"a.txt": FIXED})
    later = upstream.go_on({"a.txt": f"zero\n{LINES}"})
    merged = upstream.mirror().merged_tree(upstream.base, tree, later)
    assert upstream.read(merged, "a.txt") == f"zero\n{FIXED}".strip()
    assert not canary.exists()


def test_what_is_not_here_is_no_conflict(tmp_path: Path) -> None:
    upstream = Upstream(tmp_path, {"a.txt": LINES})
    tree = upstream.change({"a.txt": FIXED})
    with pytest.raises(CheckoutError):
        upstream.mirror().merged_tree(upstream.base, tree, "d" * 40)


def test_a_later_tree_without_end_is_not_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    upstream = Upstream(tmp_path, {"a.txt": LINES})
    tree = upstream.change({"a.txt": FIXED})
    inner = git(upstream.folder, "rev-parse", f"{upstream.base}^{{tree}}")
    for _ in range(9):  # a billion files in nine objects
        lines = "\n".join(f"040000 tree {inner}\t{number}" for number in range(10))
        inner = git(upstream.folder, "mktree", stdin=f"{lines}\n")
    later = git(upstream.folder, "commit-tree", inner, "-p", upstream.base, "-m", "raw")
    git(upstream.folder, "branch", "--force", "endless", later)
    monkeypatch.setattr(trees, "LISTING_LIMIT", 1 << 20)
    with pytest.raises(CheckoutError, match="more than 1 MB"):
        upstream.mirror().merged_tree(upstream.base, tree, later)


def test_commits_are_counted_from_one_to_the_other(tmp_path: Path) -> None:
    upstream = Upstream(tmp_path, {"a.txt": LINES})
    upstream.go_on({"b.txt": "b\n"})
    later = commit_files(upstream.folder, {"c.txt": "c\n"})
    mirror = upstream.mirror()
    assert mirror.commits_between(upstream.base, later) == 2
    assert mirror.commits_between(later, later) == 0

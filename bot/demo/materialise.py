"""Turns a bug of the catalogue into a git repository, as if its project had just released the buggy version.

Source distributions are read in memory and go into a bare repository through `git fast-import`: nothing of them is
unpacked onto the host or run there, and the same input gives the same commit on every machine.
"""

import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from unidiff import PatchSet

from bot.demo.bugs import Bug
from bot.demo.errors import CatalogueError
from bot.demo.package_index import IndexSettings, fetch

_SOURCE = "refs/heads/main"
# A fixed moment and a fixed author: the commit's SHA depends on the release alone.
_COMMITTER = "acrouter demo <demo@acrouter.invalid> 1735689600 +0000"


@dataclass(frozen=True)
class TreeFile:
    content: bytes
    executable: bool = False


Tree = Mapping[str, TreeFile]


@dataclass(frozen=True)
class BugRepository:
    """A bug, ready to be worked on."""

    bug: Bug
    git_dir: Path
    """Bare; its one branch `main` holds the buggy version in one commit."""
    base_sha: str
    fix_patch: str
    """The part of the next version that fixes the bug, without its tests."""
    hidden_tests: Mapping[str, bytes]
    """The next version's test files by path. No model sees them."""


def materialise(bug: Bug, folder: Path, *, downloads: Path, index: IndexSettings | None = None) -> BugRepository:
    """Return the bug's repository at `folder/NAME.git`, made where it is missing; `downloads` caches releases.

    Raises:
        DownloadError: a release cannot be had.
        CatalogueError: a release does not have what the catalogue says of it.
    """
    buggy = read_tree(fetch(bug.buggy_sdist, downloads, index))
    fixed = read_tree(fetch(bug.fixed_sdist, downloads, index))
    missing = [path for path in (*bug.fix, *bug.hidden.files) if path not in fixed]
    if missing:
        raise CatalogueError(f"{bug.name}: {bug.project} {bug.fixed.version} has no {', '.join(missing)}.")
    folder.mkdir(parents=True, exist_ok=True)
    git_dir = folder / f"{bug.name}.git"
    if not git_dir.exists():
        partial = Path(tempfile.mkdtemp(dir=folder, prefix=f".{bug.name}-"))
        commit_tree(partial, buggy, f"{bug.project} {bug.buggy.version}, as released")
        try:
            partial.rename(git_dir)
        except OSError:  # another process was quicker, and made the same
            shutil.rmtree(partial)
    return BugRepository(
        bug=bug,
        git_dir=git_dir,
        base_sha=git(git_dir, "rev-parse", _SOURCE).strip(),
        fix_patch=_fix_patch(bug, buggy, fixed),
        hidden_tests={path: fixed[path].content for path in bug.hidden.files},
    )


def read_tree(sdist: Path) -> Tree:
    """Return the regular files of a source distribution by their path below its top folder.

    Raises:
        CatalogueError: a member's path leads out of the tree.
    """
    files: dict[str, TreeFile] = {}
    with tarfile.open(sdist) as archive:
        for member in archive:
            parts = PurePosixPath(member.name).parts
            if not member.isfile() or len(parts) < 2:
                continue
            if member.name.startswith("/") or ".." in parts:
                raise CatalogueError(f"{sdist.name}: the member {member.name!r} leads out of its tree.")
            if parts[1] == "PKG-INFO" or any(_is_left_over(part) for part in parts):
                continue
            content = archive.extractfile(member)
            if content is not None:
                files["/".join(parts[1:])] = TreeFile(content.read(), bool(member.mode & 0o100))
    return files


def _is_left_over(part: str) -> bool:
    """True for what packaging adds, and for a submodule's link to its repository: neither belongs into a commit."""
    return part.endswith(".egg-info") or part.lower() == ".git"


def commit_tree(git_dir: Path, tree: Tree, message: str) -> None:
    """Make a bare repository at `git_dir` whose branch `main` is one commit with exactly `tree`."""
    git(git_dir, "init", "--quiet", "--bare", f"--initial-branch={_SOURCE.rpartition('/')[2]}", ".")
    _fast_import(git_dir, _commit_command(_SOURCE, tree, message))


def git(git_dir: Path, *arguments: str, stdin: bytes | None = None) -> str:
    """Run git in a bare repository of ours, without anybody's configuration.

    Raises:
        CatalogueError: git refused.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", *arguments], cwd=git_dir, input=stdin, capture_output=True, env=environment, timeout=120, check=False
    )
    if done.returncode:
        raise CatalogueError(f"git {arguments[0]}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout.decode(errors="surrogateescape")


def _fix_patch(bug: Bug, buggy: Tree, fixed: Tree) -> str:
    with tempfile.TemporaryDirectory() as scratch:
        git_dir = Path(scratch)
        commit_tree(git_dir, buggy, "buggy")
        _fast_import(git_dir, _commit_command("refs/heads/fixed", fixed, "fixed"))
        selected = [_selected_hunks(bug, git_dir, path, hunks) for path, hunks in bug.fix.items()]
    return "".join(selected)


def _selected_hunks(bug: Bug, git_dir: Path, path: str, numbers: Sequence[int]) -> str:
    # The algorithm and the context are named, so that a hunk has the same number under every git.
    options = ("--no-ext-diff", "--no-textconv", "--no-renames", "--diff-algorithm=myers", "-U3")
    patch = PatchSet(git(git_dir, "diff", *options, _SOURCE, "refs/heads/fixed", "--", path))
    if len(patch) != 1 or max(numbers, default=1) > len(patch[0]):
        raise CatalogueError(f"{bug.name}: {path} does not differ in the hunks {list(numbers)} between the versions.")
    changed = patch[0]
    shift = 0
    kept = []
    for number, hunk in enumerate(changed, start=1):
        if numbers and number not in numbers:
            continue
        hunk.target_start = hunk.source_start + shift
        shift += hunk.target_length - hunk.source_length
        kept.append(hunk)
    changed[:] = kept
    return str(changed)


def _fast_import(git_dir: Path, command: bytes) -> None:
    git(git_dir, "fast-import", "--quiet", "--date-format=raw", stdin=command)


def _commit_command(ref: str, tree: Tree, message: str) -> bytes:
    """Return the fast-import command for one commit without a parent (git-fast-import(1))."""
    text = message.encode() + b"\n"
    parts = [f"commit {ref}\ncommitter {_COMMITTER}\n".encode(), _data(text)]
    for path, file in sorted(tree.items()):
        mode = "100755" if file.executable else "100644"
        quoted = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        parts.append(f'M {mode} inline "{quoted}"\n'.encode() + _data(file.content))
    return b"".join(parts)


def _data(content: bytes) -> bytes:
    return f"data {len(content)}\n".encode() + content + b"\n"

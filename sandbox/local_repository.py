"""A person's own repository: read as it is, with nothing of its configuration."""

import contextlib
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from sandbox.bare import LOCAL_S, REF, BareRepository
from sandbox.errors import CheckoutError
from sandbox.git import GitFailedError, run_git

_NAMES_TOLD = 100


@dataclass(frozen=True)
class LocalHead:
    """Where a person's repository stands."""

    git_dir: Path
    sha: str
    branch: str
    """Full name; empty where HEAD is detached."""


def check_local(path: Path, new_branch: str = "") -> None:
    """Make sure that a person's repository can be worked on, and that `new_branch` may be made in it.

    Raises:
        CheckoutError: there is no repository at `path` or it has no commit; the branch is there, or is no name for one.
    """
    path = path.resolve()
    git_dir = _git_dir_of(path)

    def there(rev: str) -> bool:
        try:
            run_git(["rev-parse", "--verify", "--quiet", rev], git_dir=git_dir, timeout_s=LOCAL_S)
        except GitFailedError:
            return False
        return True

    if not there("HEAD^{commit}"):
        raise CheckoutError(f"{path} has no commit yet. Commit something first.")
    if not new_branch:
        return
    if not REF.fullmatch(f"refs/heads/{new_branch}") or new_branch.startswith("-") or new_branch == "HEAD":
        raise CheckoutError(f"'{new_branch}' cannot be a branch's name.")
    if there(f"refs/heads/{new_branch}"):
        raise CheckoutError(f"The branch '{new_branch}' is in {path} already. Name another one.")


def head_of(path: Path) -> LocalHead:
    """Return where the repository at `path` (or one of its worktrees) stands.

    Raises:
        CheckoutError: there is none, or it has no commit.
    """
    git_dir = _git_dir_of(path)
    try:
        sha = run_git(["rev-parse", "--verify", "HEAD^{commit}"], git_dir=git_dir, timeout_s=LOCAL_S).decode().strip()
    except GitFailedError as error:
        raise CheckoutError(f"{path} has no commit yet, or cannot be read: {error}") from error
    branch = ""
    with contextlib.suppress(GitFailedError):  # detached
        branch = run_git(["symbolic-ref", "-q", "HEAD"], git_dir=git_dir, timeout_s=LOCAL_S).decode().strip()
    return LocalHead(git_dir, sha, branch)


def uncommitted(mirror: BareRepository, path: Path, head: LocalHead) -> list[str]:
    """Compare a person's files with HEAD by their index, under the mirror's configuration instead of theirs.

    Returns the paths that differ or are untracked, at most 100.
    """
    with tempfile.TemporaryDirectory(prefix="acrouter-index-") as folder:
        index = Path(folder) / "index"
        if (head.git_dir / "index").is_file():
            shutil.copy2(head.git_dir / "index", index)
        environment = {"GIT_INDEX_FILE": str(index), "GIT_WORK_TREE": str(path)}
        compare = ("diff-index", "--name-only", "-z", "--ignore-submodules=all", head.sha, "--")
        changed = mirror.git(*compare, environment=environment)
        others = ("ls-files", "--others", "--exclude-standard", "--directory", "--no-empty-directory", "-z")
        untracked = mirror.git("-C", str(path), *others, environment=environment)
    names = [name.decode("utf-8", "replace") for name in (changed + untracked).split(b"\0") if name]
    return names[:_NAMES_TOLD]


def _git_dir_of(path: Path) -> Path:
    """Find the git folder of a worktree without asking git, which would read the configuration there."""
    for candidate in (path / ".git", path):
        if candidate.is_file():
            target = candidate.read_text(encoding="utf-8", errors="replace")
            if target.startswith("gitdir:"):
                return (path / target.removeprefix("gitdir:").strip()).resolve()
        if (candidate / "HEAD").is_file():
            return candidate
    raise CheckoutError(f"{path} is not a git repository; name the folder that holds `.git`.")

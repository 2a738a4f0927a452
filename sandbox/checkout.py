"""Bare mirrors of repositories. The host never has a worktree: trees are read and written as git objects only.

So nothing of a tree can act on the host: no hook, no filter, no attribute, no link, no configuration.
"""

import contextlib
import fcntl
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sandbox.archives import check_archive
from sandbox.errors import CheckoutError, PatchError, PushError, RemoteUnavailable
from sandbox.git import GitFailedError, check_remote, run_git
from sandbox.types import Author, GitRemote

_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
# git-check-ref-format(1), for full names.
_REF = re.compile(r"refs/(?!.*(?:\.\.|//|@\{|\.lock(?:/|$)|/\.|\.$|/$))[^\x00-\x20\x7f~^:?*\[\\]+")
# What a remote says of a ref or a commit that it does not have.
_NO_SUCH_REF = re.compile(r"find remote ref|not our ref|no such ref|unadvertised object")
_LOCAL_S = 120.0
"""Time limit of a git command that needs no network."""
# Highest precedence of all attributes: those of a tree do nothing.
_ATTRIBUTES = (
    "* -export-ignore -export-subst -text !eol -ident -filter !working-tree-encoding !diff !merge !whitespace\n"
)
_MESSAGE_LIMIT = 65_536


@dataclass(frozen=True)
class LocalCheckout:
    """What was taken from a person's own repository."""

    mirror: "Mirror"
    head_sha: str
    branch: str
    """Full name; empty where HEAD is detached."""
    uncommitted: Sequence[str]
    """Paths that differ from HEAD or are untracked (at most 100): they are not part of the mirror."""


def check_local(path: Path, new_branch: str = "") -> None:
    """Make sure that a person's repository can be worked on, and that `new_branch` may be made in it.

    Raises:
        CheckoutError: there is no repository at `path` or it has no commit; the branch is there, or is no name for one.
    """
    path = path.resolve()
    git_dir = _git_dir_of(path)

    def there(rev: str) -> bool:
        try:
            run_git(["rev-parse", "--verify", "--quiet", rev], git_dir=git_dir, timeout_s=_LOCAL_S)
        except GitFailedError:
            return False
        return True

    if not there("HEAD^{commit}"):
        raise CheckoutError(f"{path} has no commit yet. Commit something first.")
    if not new_branch:
        return
    if not _REF.fullmatch(f"refs/heads/{new_branch}") or new_branch.startswith("-"):
        raise CheckoutError(f"'{new_branch}' cannot be a branch's name.")
    if there(f"refs/heads/{new_branch}"):
        raise CheckoutError(f"The branch '{new_branch}' is in {path} already. Name another one.")


class Mirror:
    """One repository's bare mirror in `folder`, made when it is missing. Processes may share it."""

    def __init__(self, folder: Path, *, allow_local: bool = False) -> None:
        self._folder = folder.absolute()
        self._allow_local = allow_local

    @classmethod
    def from_local(cls, path: Path, folder: Path) -> LocalCheckout:
        """Read a person's local repository (or one of its worktrees) into a mirror in `folder`.

        Raises:
            CheckoutError: there is no repository at `path`, or it has no commit.
        """
        path = path.resolve()
        git_dir = _git_dir_of(path)
        mirror = cls(folder, allow_local=True)
        try:
            head = run_git(["rev-parse", "--verify", "HEAD^{commit}"], git_dir=git_dir, timeout_s=_LOCAL_S).decode()
        except GitFailedError as error:
            raise CheckoutError(f"{path} has no commit yet, or cannot be read: {error}") from error
        head = head.strip()
        branch = ""
        with contextlib.suppress(GitFailedError):  # detached
            branch = run_git(["symbolic-ref", "-q", "HEAD"], git_dir=git_dir, timeout_s=_LOCAL_S).decode().strip()
        mirror.fetch(GitRemote(str(path)), ["HEAD"], timeout_s=600)
        return LocalCheckout(mirror, mirror.resolve(head), branch, mirror._uncommitted(path, git_dir, head))

    def fetch(self, remote: GitRemote, refs: Sequence[str], *, timeout_s: float) -> None:
        """Fetch full ref names (`refs/heads/main`, `HEAD`) and SHAs. SHAs that are here are not asked for again.

        Raises:
            RemoteUnavailable: the remote did not answer, or not in time.
            CheckoutError: a ref has a wrong form, or the remote does not have it.
        """
        local = check_remote(remote, allow_local=self._allow_local)
        wanted = []
        for ref in refs:
            if _SHA.fullmatch(ref):
                if not self.has(ref):
                    wanted.append(f"{ref}:refs/acrouter/fetched/{ref}")
            elif ref == "HEAD" or _REF.fullmatch(ref):
                wanted.append(f"+{ref}:{'refs/acrouter/HEAD' if ref == 'HEAD' else ref}")
            else:
                raise CheckoutError(f"{ref!r} is neither a full ref name nor a commit's SHA.")
        if not wanted:
            return
        with self._locked(timeout_s):
            self._ensure()
            try:
                self._git(
                    "fetch",
                    "--quiet",
                    "--no-tags",
                    "--no-write-fetch-head",
                    "--no-recurse-submodules",
                    *(["--update-shallow"] if local else []),
                    "--end-of-options",
                    remote.url,
                    *wanted,
                    timeout_s=timeout_s,
                    remote=remote,
                    local=local,
                )
            except GitFailedError as error:
                if local or _NO_SUCH_REF.search(str(error)):
                    raise
                raise RemoteUnavailable(f"The repository cannot be fetched: {_reason(str(error))}") from error

    def has(self, sha: str) -> bool:
        """Return whether a commit is here."""
        if not (self._folder / "HEAD").exists():
            return False
        try:
            self._git("cat-file", "-e", f"{_checked_sha(sha)}^{{commit}}")
        except GitFailedError:
            return False
        return True

    def is_ancestor(self, older: str, newer: str) -> bool:
        """Return whether a commit is another one, or in its history; both are here."""
        missing = self._git("rev-list", "--max-count=1", _checked_sha(older), f"^{_checked_sha(newer)}")
        return not missing.strip()

    def resolve(self, rev: str) -> str:
        """Return the SHA of the commit that a SHA or a full ref name means.

        Raises:
            CheckoutError: it is neither, or not here.
        """
        if rev == "HEAD":
            rev = "refs/acrouter/HEAD"
        if not (_SHA.fullmatch(rev) or _REF.fullmatch(rev)):
            raise CheckoutError(f"{rev!r} is neither a full ref name nor a commit's SHA.")
        self._ensure()
        return self._git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{rev}^{{commit}}").decode().strip()

    def archive(self, treeish: str, destination: Path) -> None:
        """Write the tree of a commit or tree SHA as an uncompressed tar: exactly its content, links as links.

        Submodules are empty folders, LFS files their pointers.

        Raises:
            CheckoutError: it is not here, or has paths that would be dangerous to unpack.
        """
        self._ensure()
        tree = self._git("rev-parse", "--verify", "--quiet", f"{_checked_sha(treeish)}^{{tree}}").decode().strip()
        self._git("archive", "--format=tar", tree, stdout_to=destination)
        check_archive(destination)

    def tree_with_patch(self, base_sha: str, patch: str) -> str:
        """Return the SHA of the tree that `patch` makes of a commit's or tree's, through an index alone.

        A patch for an older state is merged where that goes without a conflict. Bytes that are no UTF-8 stand in
        `patch` as surrogate escapes.

        Raises:
            PatchError: it is empty, does not apply, or reaches outside of the tree.
        """
        if not patch.strip():
            raise PatchError("The patch is empty.")
        content = patch.encode("utf-8", "surrogateescape")
        self._ensure()
        failure = ""
        for merge in ([], ["--3way"]):
            with tempfile.TemporaryDirectory(prefix="acrouter-index-") as folder:
                index = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
                self._git("read-tree", f"{_checked_sha(base_sha)}^{{tree}}", environment=index)
                try:
                    self._git("apply", "--cached", "--whitespace=nowarn", *merge, "-", stdin=content, environment=index)
                    return self._git("write-tree", environment=index).decode().strip()
                except GitFailedError as error:
                    failure = failure or str(error)  # the first says more than the merge's
        raise PatchError(f"The patch does not apply: {failure}")

    def commit(self, tree: str, parent: str, message: str, author: Author, when: datetime) -> str:
        """Write a commit and return its SHA; the same arguments give the same SHA. `when` is aware.

        Raises:
            CheckoutError: tree or parent are not here, or the author cannot stand in a commit.
        """
        if when.tzinfo is None:
            raise CheckoutError("A commit's time needs a time zone.")
        if re.search(r"[<>\n\0]", author.name + author.email) or not author.name.strip():
            raise CheckoutError(f"{author.name!r} <{author.email!r}> cannot be a commit's author.")
        self._ensure()
        date = f"@{int(when.timestamp())} +0000"
        identity = {
            f"GIT_{role}_{field}": value
            for role in ("AUTHOR", "COMMITTER")
            for field, value in (("NAME", author.name), ("EMAIL", author.email), ("DATE", date))
        }
        text = message.replace("\0", "").strip()[:_MESSAGE_LIMIT] + "\n"
        arguments = ("commit-tree", _checked_sha(tree), "-p", _checked_sha(parent), "-F", "-")
        content = text.encode("utf-8", "replace")
        return self._git(*arguments, stdin=content, environment=identity).decode().strip()

    def diff(self, a: str, b: str) -> str:
        """Return the patch between two commits or trees, binary files included; see `tree_with_patch` for bytes."""
        self._ensure()
        arguments = ("diff-tree", "-r", "-p", "--binary", "--full-index", "--no-ext-diff", "--no-textconv", "-M")
        return self._git(*arguments, _checked_sha(a), _checked_sha(b)).decode("utf-8", "surrogateescape")

    def push(self, remote: GitRemote, sha: str, branch: str, *, expected: str | None, timeout_s: float = 300) -> None:
        """Make `branch` of the remote point at `sha`, if it still points at `expected` (None: does not exist yet).

        A branch that is at `sha` already is left as it is.

        Raises:
            PushError: somebody else's commit is there, or the remote refused it.
            RemoteUnavailable: the remote did not answer, or not in time.
        """
        ref = _branch_ref(branch)
        lease = _checked_sha(expected) if expected is not None else ""
        try:
            local = check_remote(remote, allow_local=self._allow_local)
            self._git(
                "push",
                "--porcelain",
                "--no-verify",
                "--no-signed",
                f"--force-with-lease={ref}:{lease}",
                "--end-of-options",
                remote.url,
                f"{_checked_sha(sha)}:{ref}",
                timeout_s=timeout_s,
                remote=remote,
                local=local,
            )
        except GitFailedError as error:
            with contextlib.suppress(CheckoutError):
                if self.remote_head(remote, branch) == sha:
                    return
            words = f"{branch} cannot be pushed: {_reason(str(error))}"
            # With --porcelain what the remote says of a ref begins with its flag; without that, it said nothing.
            if local or re.search(r"^!\t", str(error), re.MULTILINE):
                raise PushError(words) from error
            raise RemoteUnavailable(words) from error
        except CheckoutError as error:
            raise PushError(str(error)) from error

    def remote_head(self, remote: GitRemote, branch: str, *, timeout_s: float = 60) -> str | None:
        """Return the SHA of a remote's branch right now, or None where there is none.

        Raises:
            RemoteUnavailable: the remote cannot be asked.
        """
        ref = _branch_ref(branch)
        local = check_remote(remote, allow_local=self._allow_local)
        self._ensure()
        try:
            listed = self._git(
                "ls-remote", "--end-of-options", remote.url, ref, timeout_s=timeout_s, remote=remote, local=local
            )
        except GitFailedError as error:
            raise RemoteUnavailable(f"The repository cannot be asked for {branch}: {_reason(str(error))}") from error
        for line in listed.decode("utf-8", "replace").splitlines():
            sha, _, name = line.partition("\t")
            if name == ref and _SHA.fullmatch(sha):
                return sha
        return None

    def _uncommitted(self, path: Path, git_dir: Path, head: str) -> list[str]:
        """Compare a person's files with HEAD by their index, under the mirror's configuration instead of theirs."""
        with tempfile.TemporaryDirectory(prefix="acrouter-index-") as folder:
            index = Path(folder) / "index"
            if (git_dir / "index").is_file():
                shutil.copy2(git_dir / "index", index)
            environment = {"GIT_INDEX_FILE": str(index), "GIT_WORK_TREE": str(path)}
            changed = self._git(
                "diff-index", "--name-only", "-z", "--ignore-submodules=all", head, "--", environment=environment
            )
            untracked = self._git("-C", str(path), "ls-files", "--others", "--exclude-standard", "--directory", "-z",
                                  environment=environment)  # fmt: skip
        names = [name.decode("utf-8", "replace") for name in (changed + untracked).split(b"\0") if name]
        return names[:100]

    def _git(
        self,
        *arguments: str,
        timeout_s: float = _LOCAL_S,
        stdin: bytes = b"",
        stdout_to: Path | None = None,
        remote: GitRemote | None = None,
        environment: dict[str, str] | None = None,
        local: bool = False,
    ) -> bytes:
        return run_git(
            arguments,
            git_dir=self._folder,
            timeout_s=timeout_s,
            stdin=stdin,
            stdout_to=stdout_to,
            remote=remote,
            environment=environment,
            allow_local=local,
        )

    def _ensure(self) -> None:
        attributes = self._folder / "info" / "attributes"
        if not attributes.exists():
            self._folder.mkdir(parents=True, exist_ok=True)
            run_git(
                ["init", "--quiet", "--bare", "--template=", str(self._folder)],
                git_dir=self._folder,
                timeout_s=_LOCAL_S,
            )
            attributes.parent.mkdir(exist_ok=True)
            # Written last and at once: a mirror without it is not finished.
            draft = attributes.with_suffix(f".{time.monotonic_ns()}")
            draft.write_text(_ATTRIBUTES, encoding="ascii")
            draft.rename(attributes)

    @contextmanager
    def _locked(self, timeout_s: float) -> Iterator[None]:
        self._folder.parent.mkdir(parents=True, exist_ok=True)
        deadline = time.monotonic() + timeout_s
        with (self._folder.parent / f"{self._folder.name}.lock").open("w") as lock:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise CheckoutError(f"Another fetch into {self._folder.name} takes too long.") from None
                    time.sleep(0.05)
            yield


def _checked_sha(text: str) -> str:
    if not _SHA.fullmatch(text):
        raise CheckoutError(f"{text!r} is not a full SHA.")
    return text


def _branch_ref(branch: str) -> str:
    ref = branch if branch.startswith("refs/heads/") else f"refs/heads/{branch}"
    if not _REF.fullmatch(ref):
        raise PushError(f"{branch!r} cannot be a branch's name.")
    return ref


def _git_dir_of(path: Path) -> Path:
    """Find the git folder of a worktree without asking git, which would read the configuration there."""
    for candidate in (path / ".git", path):
        if candidate.is_file():
            target = candidate.read_text(encoding="utf-8", errors="replace").removeprefix("gitdir:").strip()
            return (path / target).resolve()
        if (candidate / "HEAD").is_file():
            return candidate
    raise CheckoutError(f"{path} is not a git repository; name the folder that holds `.git`.")


def _reason(said: str) -> str:
    if "stale info" in said:
        return "somebody else has pushed to it since."
    lines = [line for line in said.splitlines() if line.startswith(("remote:", "!", "fatal:", "error:"))]
    return " ".join(" ".join(lines).split()) or said

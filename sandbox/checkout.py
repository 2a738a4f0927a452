"""Bare mirrors of repositories. The host never has a worktree: trees are read and written as git objects only.

So nothing of a tree can act on the host: no hook, no filter, no attribute, no link, no configuration.
"""

import contextlib
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sandbox.bare import REF, SHA, BareRepository, RepositoryTooLargeError, checked_sha, is_damage
from sandbox.errors import CheckoutError, PushError, RemoteRefused, RemoteUnavailable
from sandbox.git import TOO_SLOW, GitFailedError, check_remote
from sandbox.lfs import fetch_files
from sandbox.local_repository import head_of, uncommitted
from sandbox.remotes import Author, GitRemote
from sandbox.submodules import fetch_submodules
from sandbox.tree_archives import TreeArchives
from sandbox.trees import merged_tree, patched_tree
from sandbox.types import DEFAULT_LIMITS

# What a remote says of a ref or a commit that it does not have.
_NO_SUCH_REF = re.compile(r"find remote ref|not our ref|no such ref|unadvertised object")
_REFUSED = re.compile(
    r"returned error: (?:401|403|404)\b|Authentication failed|could not read Username|repository '[^'\n]*' not found"
)
_MESSAGE_LIMIT = 65_536
_LARGEST_PACK = 20_000_000_000
_DROP_S = 30.0


@dataclass(frozen=True)
class LocalCheckout:
    """What was taken from a person's own repository."""

    mirror: "Mirror"
    head_sha: str
    branch: str
    """Full name; empty where HEAD is detached."""
    uncommitted: Sequence[str]
    """Paths that differ from HEAD or are untracked (at most 100): they are not part of the mirror."""


class Mirror:
    """One repository's bare mirror in `folder`, made when it is missing. Processes may share it.

    Trees of more than `largest_tree` bytes, which no sandbox has room for, are refused, and so is a history that takes
    more than `largest_pack` bytes.
    """

    def __init__(
        self,
        folder: Path,
        *,
        allow_local: bool = False,
        largest_tree: int = DEFAULT_LIMITS.tree_bytes,
        largest_pack: int = _LARGEST_PACK,
    ) -> None:
        self._bare = BareRepository(folder)
        self._largest_pack = largest_pack
        self._archives = TreeArchives(self._bare, largest_tree)
        self._allow_local = allow_local

    @classmethod
    def from_local(cls, path: Path, folder: Path, *, largest_tree: int = DEFAULT_LIMITS.tree_bytes) -> LocalCheckout:
        """Read a person's local repository (or one of its worktrees) into a mirror in `folder`.

        Raises:
            CheckoutError: there is no repository at `path`, or it has no commit.
        """
        path = path.resolve()
        head = head_of(path)
        mirror = cls(folder, allow_local=True, largest_tree=largest_tree)
        mirror.fetch(GitRemote(str(path)), ["HEAD"], timeout_s=600)
        sha = mirror.resolve(head.sha)
        return LocalCheckout(mirror, sha, head.branch, uncommitted(mirror._bare, path, head))

    def fetch(self, remote: GitRemote, refs: Sequence[str], *, timeout_s: float) -> None:
        """Fetch full ref names (`refs/heads/main`, `HEAD`) and SHAs. SHAs that are here are not asked for again.

        Raises:
            RemoteUnavailable: the remote did not answer.
            RemoteRefused: it refused, or gave not all within `timeout_s`.
            CheckoutError: a ref has a wrong form, or the remote does not have it; or the history is too large.
        """
        local = check_remote(remote, allow_local=self._allow_local)
        wanted = []
        for ref in refs:
            if SHA.fullmatch(ref):
                if not self.has(ref):
                    wanted.append(f"{ref}:refs/acrouter/fetched/{ref}")
            elif ref == "HEAD" or REF.fullmatch(ref):
                wanted.append(f"+{ref}:{_kept_as(ref)}")
            else:
                raise CheckoutError(f"{ref!r} is neither a full ref name nor a commit's SHA.")
        if not wanted:
            return
        options = ["--update-shallow"] if local else []
        try:
            self._bare.fetch(
                remote, wanted, *options, timeout_s=timeout_s, largest_pack=self._largest_pack, local=local
            )
        except RepositoryTooLargeError as error:
            raise CheckoutError(
                f"The repository cannot be fetched: {error} Who runs acrouter can raise ACROUTER_CACHE_GB."
            ) from error
        except GitFailedError as error:
            if local or _NO_SUCH_REF.search(str(error)):
                raise
            words = f"The repository cannot be fetched: {_reason(str(error))}"
            too_slow = TOO_SLOW in str(error)
            if too_slow:
                words += ". Who runs acrouter can raise ACROUTER_SETUP_TIMEOUT_S."
            raise _failed(words, error, counts=too_slow) from error

    def fetch_submodules(self, remote: GitRemote, treeish: str, *, timeout_s: float) -> Sequence[str]:
        """Fetch the submodules of a commit that is here, from the host of `remote` alone and without its token.

        Archives have their files from now on. Returns what cannot be had, as sentences.

        Raises:
            RemoteUnavailable: the host did not answer.
            RemoteRefused: a submodule did not come within `timeout_s`.
        """
        sha = checked_sha(treeish)
        return fetch_submodules(self._bare, remote, sha, timeout_s=timeout_s, allow_local=self._allow_local)

    def fetch_lfs(self, remote: GitRemote, treeish: str, *, timeout_s: float) -> Sequence[str]:
        """Fetch the files that the LFS pointers of a commit stand for, from the server of `remote`.

        Archives have them in place of the pointers from now on. Returns what cannot be had, as sentences.

        Raises:
            RemoteUnavailable: the server did not answer, or not in time.
        """
        check_remote(remote, allow_local=False)
        with self._bare.locked(timeout_s):
            return fetch_files(self._bare, remote, checked_sha(treeish), timeout_s=timeout_s)

    def has(self, sha: str) -> bool:
        """Return whether a commit is here."""
        if not self._bare.exists:
            return False
        try:
            self._bare.git("cat-file", "-e", f"{checked_sha(sha)}^{{commit}}")
        except GitFailedError:
            return False
        return True

    def is_ancestor(self, older: str, newer: str) -> bool:
        """Return whether a commit is another one, or in its history; both are here."""
        missing = self._bare.git("rev-list", "--max-count=1", checked_sha(older), f"^{checked_sha(newer)}")
        return not missing.strip()

    def commits_between(self, older: str, newer: str) -> int:
        """Return how many commits a commit's history has that are not in an older one's; both are here."""
        counted = self._bare.git("rev-list", "--count", checked_sha(newer), f"^{checked_sha(older)}")
        return int(counted)

    def resolve(self, rev: str) -> str:
        """Return the SHA of the commit that a SHA or a full ref name means.

        Raises:
            CheckoutError: it is neither, or not here.
        """
        if not (SHA.fullmatch(rev) or rev == "HEAD" or REF.fullmatch(rev)):
            raise CheckoutError(f"{rev!r} is neither a full ref name nor a commit's SHA.")
        self._bare.ensure()
        name = rev if SHA.fullmatch(rev) else _kept_as(rev)
        arguments = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        return self._bare.git(*arguments).decode().strip()

    def archive(self, treeish: str, destination: Path) -> None:
        """Write the tree of a commit or tree SHA as an uncompressed tar: exactly its content, links as links.

        Submodules that were not fetched are empty folders, LFS files that were not their pointers. A commit's archive
        is kept for the next one.

        Raises:
            CheckoutError: it is not here, is too large, or has paths that would be dangerous to unpack.
            RemoteUnavailable: a part of the commit is damaged; the mirror is gone, and the next fetch makes it anew.
        """
        self._bare.ensure()
        kind = self._bare.git("cat-file", "-t", checked_sha(treeish)).decode().strip()
        tree = self._bare.git("rev-parse", "--verify", "--quiet", f"{treeish}^{{tree}}").decode().strip()
        try:
            self._archives.write(tree, destination, keep=kind == "commit")
        except CheckoutError as error:
            if kind != "commit" or not is_damage(error):
                raise
            # git would not fetch it again: it looks at commits, and this one is here.
            self._bare.drop(_DROP_S)
            raise RemoteUnavailable(f"The mirror of the repository is damaged and is made anew: {error}") from error

    def tree_with_patch(self, base_sha: str, patch: str) -> str:
        """Return the SHA of the tree that `patch` makes of a commit's or tree's, through an index alone.

        A patch for an older state is merged where that goes without a conflict. Bytes that are no UTF-8 stand in
        `patch` as surrogate escapes.

        Raises:
            PatchError: it is empty, does not apply, or reaches outside of the tree.
        """
        self._bare.ensure()
        return patched_tree(self._bare, base_sha, patch)

    def tree_of(self, sha: str) -> str:
        """Return the SHA of a commit's tree.

        Raises:
            CheckoutError: the commit is not here.
        """
        self._bare.ensure()
        return self._bare.git("rev-parse", "--verify", "--quiet", f"{checked_sha(sha)}^{{tree}}").decode().strip()

    def merged_tree(self, base_sha: str, tree: str, later_sha: str) -> str:
        """Return the SHA of the tree that has a change, from `base_sha` to `tree`, on top of a descendant of the base.

        Raises:
            PatchError, CheckoutError: as `sandbox.trees.merged_tree` says.
        """
        self._bare.ensure()
        return merged_tree(self._bare, base_sha, tree, later_sha)

    def commit(self, tree: str, parent: str, message: str, author: Author, when: datetime) -> str:
        """Write a commit and return its SHA; the same arguments give the same SHA. `when` is aware.

        Raises:
            CheckoutError: tree or parent are not here, or the author cannot stand in a commit.
        """
        if when.tzinfo is None:
            raise CheckoutError("A commit's time needs a time zone.")
        if re.search(r"[<>\n\0]", author.name + author.email) or not author.name.strip():
            raise CheckoutError(f"{author.name!r} <{author.email!r}> cannot be a commit's author.")
        self._bare.ensure()
        date = f"@{int(when.timestamp())} +0000"
        identity = {
            f"GIT_{role}_{field}": value
            for role in ("AUTHOR", "COMMITTER")
            for field, value in (("NAME", author.name), ("EMAIL", author.email), ("DATE", date))
        }
        text = message.replace("\0", "").strip()[:_MESSAGE_LIMIT] + "\n"
        arguments = ("commit-tree", checked_sha(tree), "-p", checked_sha(parent), "-F", "-")
        content = text.encode("utf-8", "replace")
        return self._bare.git(*arguments, stdin=content, environment=identity).decode().strip()

    def diff(self, a: str, b: str) -> str:
        """Return the patch between two commits or trees, binary files included; see `tree_with_patch` for bytes."""
        self._bare.ensure()
        arguments = ("diff-tree", "-r", "-p", "--binary", "--full-index", "--no-ext-diff", "--no-textconv", "-M")
        return self._bare.git(*arguments, checked_sha(a), checked_sha(b)).decode("utf-8", "surrogateescape")

    def push(self, remote: GitRemote, sha: str, branch: str, *, expected: str | None, timeout_s: float = 300) -> None:
        """Make `branch` of the remote point at `sha`, if it still points at `expected` (None: does not exist yet).

        A branch that is at `sha` already is left as it is.

        Raises:
            PushError: somebody else's commit is there, or the remote refused the commit.
            RemoteRefused: the remote refused the token, or is not there.
            RemoteUnavailable: the remote did not answer, or not in time.
        """
        ref = _branch_ref(branch)
        lease = checked_sha(expected) if expected is not None else ""
        try:
            local = check_remote(remote, allow_local=self._allow_local)
            self._bare.git(
                "push",
                "--porcelain",
                "--no-verify",
                "--no-signed",
                f"--force-with-lease={ref}:{lease}",
                "--end-of-options",
                remote.url,
                f"{checked_sha(sha)}:{ref}",
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
            raise _failed(words, error) from error
        except CheckoutError as error:
            raise PushError(str(error)) from error

    def remote_head(self, remote: GitRemote, branch: str, *, timeout_s: float = 60) -> str | None:
        """Return the SHA of a remote's branch right now, or None where there is none.

        Raises:
            RemoteUnavailable: the remote cannot be asked.
            RemoteRefused: it refused the token, or is not there.
        """
        ref = _branch_ref(branch)
        local = check_remote(remote, allow_local=self._allow_local)
        self._bare.ensure()
        try:
            listed = self._bare.git(
                "ls-remote", "--end-of-options", remote.url, ref, timeout_s=timeout_s, remote=remote, local=local
            )
        except GitFailedError as error:
            raise _failed(f"The repository cannot be asked for {branch}: {_reason(str(error))}", error) from error
        for line in listed.decode("utf-8", "replace").splitlines():
            sha, _, name = line.partition("\t")
            if name == ref and SHA.fullmatch(sha):
                return sha
        return None


def _kept_as(ref: str) -> str:
    """Return the mirror's own name for a ref.

    Under its own, a ref that the remote has deleted would stand in the way of another: `feature` of `feature/a`.
    """
    digest = hashlib.sha256(ref.encode("utf-8", "surrogatepass")).hexdigest()
    return f"refs/acrouter/of/{digest[:40]}"


def _branch_ref(branch: str) -> str:
    ref = branch if branch.startswith("refs/heads/") else f"refs/heads/{branch}"
    if not REF.fullmatch(ref):
        raise PushError(f"{branch!r} cannot be a branch's name.")
    return ref


def _failed(words: str, error: GitFailedError, *, counts: bool = False) -> CheckoutError:
    """Return what to raise: whether it `counts` as a try, as a refusal does, or may be waited for."""
    refused = counts or _REFUSED.search(str(error)) is not None
    return RemoteRefused(words) if refused else RemoteUnavailable(words)


def _reason(said: str) -> str:
    if "stale info" in said:
        return "somebody else has pushed to it since."
    lines = [line for line in said.splitlines() if line.startswith(("remote:", "!", "fatal:", "error:"))]
    return " ".join(" ".join(lines).split()) or said

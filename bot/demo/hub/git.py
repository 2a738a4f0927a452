"""A bare git repository as a forge keeps it: refs, commits made from texts, merges and diffs."""

import os
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from bot.errors import BotError

# Nobody's configuration, hooks or prompts reach git here.
ENVIRONMENT: Mapping[str, str] = {
    "PATH": os.environ.get("PATH", os.defpath),
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_TERMINAL_PROMPT": "0",
}

_SHA = re.compile("[0-9a-f]{40}")


class HubGitError(BotError):
    """git refused; the message is its own."""


class MergeConflictError(HubGitError):
    """The two branches changed the same lines."""


@dataclass(frozen=True)
class Identity:
    name: str
    email: str


@dataclass(frozen=True)
class Commit:
    sha: str
    tree: str
    parents: Sequence[str]
    author: Identity
    author_date: str
    """ISO 8601 with its own offset."""
    committer: Identity
    committer_date: str
    message: str


@dataclass(frozen=True)
class ChangedFile:
    path: str
    status: str
    """added, removed, modified or renamed."""
    additions: int
    deletions: int
    blob_sha: str
    patch: str


@dataclass(frozen=True)
class BareRepository:
    """A bare repository on this machine's disk."""

    path: Path

    @classmethod
    def copy_of(cls, source: Path, target: Path) -> "BareRepository":
        """Make a bare copy of a repository with all its branches and tags."""
        run(["clone", "--quiet", "--bare", "--no-hardlinks", str(source), str(target)])
        return cls(target)

    def branches(self) -> dict[str, str]:
        """Return the SHA of each branch's head, by name."""
        lines = self._git("for-each-ref", "--format=%(refname:lstrip=2) %(objectname)", "refs/heads").splitlines()
        return dict(line.rsplit(" ", 1) for line in lines)

    def default_branch(self) -> str:
        return (self.path / "HEAD").read_text(encoding="utf-8").strip().removeprefix("ref: refs/heads/")

    def resolve(self, ref: str) -> str | None:
        """Return the commit that a branch, tag or SHA means, or None."""
        if ref.startswith("-"):
            return None
        for candidate in (f"refs/heads/{ref}", f"refs/tags/{ref}", ref):
            found = self._try("rev-parse", "--verify", "--quiet", f"{candidate}^{{commit}}")
            if found:
                return found.strip()
        return None

    def set_branch(self, name: str, sha: str) -> None:
        self._git("update-ref", f"refs/heads/{name}", sha)

    def delete_branch(self, name: str) -> None:
        self._git("update-ref", "-d", f"refs/heads/{name}")

    def commit(self, sha: str) -> Commit:
        form = "--format=%H%x00%T%x00%P%x00%an%x00%ae%x00%aI%x00%cn%x00%ce%x00%cI%x00%B"
        fields = self._about([sha], "show", "--no-patch", form, sha).split("\0")
        return Commit(
            sha=fields[0],
            tree=fields[1],
            parents=tuple(fields[2].split()),
            author=Identity(fields[3], fields[4]),
            author_date=fields[5],
            committer=Identity(fields[6], fields[7]),
            committer_date=fields[8],
            # `show` ends what it prints with a line end of its own.
            message=fields[9].removesuffix("\n"),
        )

    def commits_between(self, base: str, head: str) -> list[str]:
        """Return the commits of `head` that `base` has not, oldest first."""
        return self._about([base, head], "rev-list", "--reverse", "--topo-order", f"{base}..{head}").split()

    def merge_base(self, one: str, other: str) -> str | None:
        found = self._try("merge-base", one, other)
        return found.strip() if found else None

    def fetch_from(self, fork: "BareRepository", sha: str) -> None:
        """Bring a fork's branch head over, kept under a ref of its own as GitHub keeps `refs/pull`."""
        self._git("fetch", "--quiet", "--no-tags", str(fork.path), f"{sha}:refs/pull/{sha}/head")

    def diff(self, base: str, head: str) -> str:
        """Return what `head` changed since it left `base`, as a unified diff."""
        return self._git("diff", "--no-color", "--no-ext-diff", "--no-textconv", f"{base}...{head}")

    def changed_files(self, base: str, head: str) -> list[ChangedFile]:
        since = f"{base}...{head}"
        options = ("--no-color", "--no-ext-diff", "--no-textconv", "--no-renames")
        words = {"A": "added", "D": "removed", "M": "modified", "T": "modified"}
        found = []
        raw = self._about([base, head], "diff", *options, "--raw", "--no-abbrev", "-z", since).split("\0")
        for meta, path in zip(raw[0::2], raw[1::2], strict=False):
            _, _, old_blob, new_blob, letter = meta.split()
            patch = self._about([base, head], "diff", *options, since, "--", f":(literal){path}")
            hunks = patch[patch.find("@@") :] if "@@" in patch else ""
            lines = hunks.splitlines()
            found.append(
                ChangedFile(
                    path=path,
                    status=words.get(letter[0], "modified"),
                    additions=sum(line.startswith("+") for line in lines),
                    deletions=sum(line.startswith("-") for line in lines),
                    blob_sha=old_blob if letter == "D" else new_blob,
                    patch=hunks.rstrip("\n"),
                )
            )
        return found

    def file(self, ref: str, path: str) -> bytes | None:
        """Return a file's bytes at a ref, or None where there is no such file."""
        sha = self.resolve(ref)
        if sha is None or self._try("cat-file", "-t", f"{sha}:{path}") != "blob\n":
            return None
        return run_bytes(["cat-file", "blob", f"{sha}:{path}"], repository=self.path)

    def blob_sha(self, ref: str, path: str) -> str:
        return self._git("rev-parse", f"{self.resolve(ref)}:{path}").strip()

    def commit_files(
        self, branch: str, files: Mapping[str, str | bytes | None], message: str, author: Identity, parent: str = ""
    ) -> str:
        """Commit texts (None: the file goes) on top of a branch and return the commit.

        A branch that is not there starts at `parent`, or at the default branch.
        """
        start = self.resolve(branch) or self.resolve(parent or self.default_branch())
        with tempfile.TemporaryDirectory(prefix="acrouter-hub-") as folder:
            index = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
            if start:
                self._git("read-tree", start, env=index)
            entries = "".join(self._index_entry(start, path, content) for path, content in files.items())
            run_bytes(["update-index", "-z", "--index-info"], repository=self.path, env=index, stdin=entries.encode())
            tree = self._git("write-tree", env=index).strip()
        parents = ["-p", start] if start else []
        sha = self._git("commit-tree", tree, *parents, "-m", message, env=_as(author)).strip()
        self.set_branch(branch, sha)
        return sha

    def _index_entry(self, start: str | None, path: str, content: str | bytes | None) -> str:
        """Return a line of `git update-index --index-info`; a file that was there keeps its mode."""
        if content is None:
            return f"0 {'0' * 40}\t{path}\0"
        data = content.encode() if isinstance(content, str) else content
        blob = run_bytes(["hash-object", "-w", "--stdin"], repository=self.path, stdin=data).decode().strip()
        known = self._git("ls-tree", "-z", start, "--", path).split(" ", 1)[0] if start else ""
        return f"{known or '100644'} {blob}\t{path}\0"

    def merge(self, base: str, head_sha: str, message: str, author: Identity) -> str:
        """Merge a commit into the branch `base` with a merge commit, and return it.

        Raises:
            MergeConflictError: git cannot merge the two by itself.
        """
        with tempfile.TemporaryDirectory(prefix="acrouter-hub-") as folder:
            tree = Path(folder) / "tree"
            run(["clone", "--quiet", "--shared", "--branch", base, str(self.path), str(tree)])
            options = ["-c", f"core.hooksPath={os.devnull}"]
            try:
                run([*options, "merge", "--quiet", "--no-ff", "-m", message, head_sha], cwd=tree, env=_as(author))
            except HubGitError as error:
                raise MergeConflictError(str(error)) from error
            run([*options, "push", "--quiet", "origin", f"HEAD:refs/heads/{base}"], cwd=tree)
        merged = self.resolve(base)
        assert merged is not None
        return merged

    def _git(self, *arguments: str, env: Mapping[str, str] | None = None) -> str:
        return run(arguments, repository=self.path, env=env)

    def _about(self, refs: Sequence[str], *arguments: str) -> str:
        """Ask git about refs; what hangs on whole SHAs alone never changes, and is asked once."""
        whole = all(_SHA.fullmatch(ref) for ref in refs)
        return _kept(self.path, arguments) if whole else self._git(*arguments)

    def _try(self, *arguments: str) -> str | None:
        try:
            return self._git(*arguments)
        except HubGitError:
            return None


@lru_cache(maxsize=10_000)
def _kept(repository: Path, arguments: Sequence[str]) -> str:
    return run(arguments, repository=repository)


def run(
    arguments: Sequence[str],
    *,
    repository: Path | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> str:
    """Run git and return what it printed.

    Raises:
        HubGitError: it failed.
    """
    return run_bytes(arguments, repository=repository, cwd=cwd, env=env).decode("utf-8", "replace")


def run_bytes(
    arguments: Sequence[str],
    *,
    repository: Path | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
) -> bytes:
    """Run git and return the bytes that it printed."""
    where = [f"--git-dir={repository}"] if repository else []
    done = subprocess.run(
        ["git", *where, *arguments],
        input=stdin,
        capture_output=True,
        cwd=cwd,
        env={**ENVIRONMENT, **(env or {})},
        timeout=60,
        check=False,
    )
    if done.returncode:
        raise HubGitError(f"git {arguments[0]}: {done.stderr.decode('utf-8', 'replace').strip()[-500:]}")
    return done.stdout


def _as(author: Identity) -> dict[str, str]:
    return {
        "GIT_AUTHOR_NAME": author.name,
        "GIT_AUTHOR_EMAIL": author.email,
        "GIT_COMMITTER_NAME": author.name,
        "GIT_COMMITTER_EMAIL": author.email,
    }

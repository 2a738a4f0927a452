"""Keeps the stateful GitHub's git objects and refs in step with a bare repository's.

It hashes objects as git does, so each commit has the same SHA on both sides; where it has not, mirroring fails.
"""

import base64
from dataclasses import dataclass, field
from datetime import UTC, datetime

from bot.demo.hub.actions import ActionsStore
from bot.demo.hub.git import BareRepository, run, run_bytes
from tests.support.github.emulate import Emulate, EmulateError


@dataclass
class PullHead:
    """Where a pull request's head is. The stateful GitHub keeps the SHA that it was opened with."""

    repository: str
    ref: str
    sha: str
    base_ref: str
    open: bool = True


@dataclass
class Hosted:
    """A repository that both sides know."""

    id: int
    full_name: str
    bare: BareRepository
    actions: ActionsStore = field(default_factory=ActionsStore)
    pulls: dict[int, PullHead] = field(default_factory=dict)
    permissions: dict[str, str] = field(default_factory=dict)
    mirrored: dict[str, str] = field(default_factory=dict)
    """The branches' heads as the stateful GitHub has them."""
    pushed_at: str = ""
    """When a branch moved last. The stateful GitHub keeps the time at which it was made."""
    _known: set[str] = field(default_factory=set)

    def copy_objects(self, emulate: Emulate, sha: str) -> None:
        """Copy a commit and everything that it needs."""
        for commit_sha in self._git("rev-list", "--reverse", "--topo-order", sha).split():
            if commit_sha not in self._known:
                self._copy_commit(emulate, commit_sha)
                self._known.add(commit_sha)

    def copy_refs(self, emulate: Emulate) -> dict[str, tuple[str | None, str | None]]:
        """Make the branches there those of the bare repository; return before and after of each that moved."""
        before, after = self.mirrored, self.bare.branches()
        moved: dict[str, tuple[str | None, str | None]] = {}
        for name in before.keys() | after.keys():
            old, new = before.get(name), after.get(name)
            if old == new:
                continue
            moved[name] = (old, new)
            if new is None:
                emulate.mirror("DELETE", self._path(f"git/refs/heads/{name}"))
                continue
            self.copy_objects(emulate, new)
            self.force_ref(emulate, name, new, exists=old is not None)
        if moved:
            self.pushed_at = datetime.now(UTC).isoformat()
        self.mirrored = after
        return moved

    def force_ref(self, emulate: Emulate, name: str, sha: str, *, exists: bool = True) -> None:
        if exists:
            emulate.mirror("PATCH", self._path(f"git/refs/heads/{name}"), {"sha": sha, "force": True})
        else:
            emulate.mirror("POST", self._path("git/refs"), {"ref": f"refs/heads/{name}", "sha": sha})

    def _copy_commit(self, emulate: Emulate, sha: str) -> None:
        commit = self.bare.commit(sha)
        entries = []
        for line in self._git("ls-tree", "-r", "-z", sha).split("\0"):
            if not line:
                continue
            meta, path = line.split("\t", 1)
            mode, kind, blob = meta.split()
            if kind == "blob" and blob not in self._known:
                data = run_bytes(["cat-file", "blob", blob], repository=self.bare.path)
                content = {"content": base64.b64encode(data).decode(), "encoding": "base64"}
                emulate.mirror("POST", self._path("git/blobs"), content)
                self._known.add(blob)
            entries.append({"path": path, "mode": mode, "type": kind, "sha": blob})
        tree = emulate.mirror("POST", self._path("git/trees"), {"tree": entries})
        people = {
            role: {"name": who.name, "email": who.email, "date": date}
            for role, who, date in (
                ("author", commit.author, commit.author_date),
                ("committer", commit.committer, commit.committer_date),
            )
        }
        body = {"message": commit.message, "tree": tree["sha"], "parents": list(commit.parents), **people}
        made = emulate.mirror("POST", self._path("git/commits"), body)
        if made["sha"] != sha:
            raise EmulateError(f"commit {sha} became {made['sha']}: it has a part that the API cannot carry")

    def _git(self, *arguments: str) -> str:
        return run(arguments, repository=self.bare.path)

    def _path(self, tail: str) -> str:
        return f"/repos/{self.full_name}/{tail}"

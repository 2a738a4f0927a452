"""Stand-ins for the mirror where git over HTTP is not what a test is about."""

import os
import subprocess
import tarfile
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from bot.demo.hub import pulls
from bot.demo.hub.server import LocalHub
from sandbox.checkout import Mirror


class LocalMirror(Mirror):
    """Fetches and pushes by path."""

    def __init__(self, folder: Path, *, largest_tree: int, largest_pack: int) -> None:
        super().__init__(folder, allow_local=True, largest_tree=largest_tree, largest_pack=largest_pack)


class QuickMirror:
    """Commits and pushes in the hosted repository itself, by a few short commands instead of a dozen."""

    hub: LocalHub
    made: ClassVar[dict[tuple[str, str], str]] = {}

    def __init__(self, _folder: Path, *, largest_tree: int, largest_pack: int) -> None:
        self._repository = self.hub._repository("")

    def has(self, _sha: str) -> bool:
        return True

    def fetch(self, _remote: object, _refs: Sequence[str], *, timeout_s: float) -> None:
        pass

    def fetch_submodules(self, _remote: object, _sha: str, *, timeout_s: float) -> Sequence[str]:
        return ()

    def fetch_lfs(self, _remote: object, _sha: str, *, timeout_s: float) -> Sequence[str]:
        return ()

    def is_ancestor(self, older: str, newer: str) -> bool:
        return not self._git("rev-list", "--max-count=1", older, f"^{newer}")

    def resolve(self, ref: str) -> str:
        return self._git("rev-parse", ref)

    def tree_of(self, sha: str) -> str:
        return self._git("rev-parse", f"{sha}^{{tree}}")

    def archive(self, _sha: str, destination: Path) -> None:
        with tarfile.open(destination, "w"):
            pass

    def tree_with_patch(self, base_sha: str, _patch: str) -> str:
        return f"{base_sha}^{{tree}}"

    def commit(self, tree: str, parent: str, message: str, _author: object, when: datetime) -> str:
        key = (message, when.isoformat())
        if key not in self.made:
            who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a"}
            environment = {**os.environ, **who, "GIT_COMMITTER_EMAIL": "a@b", "GIT_COMMITTER_DATE": when.isoformat()}
            self.made[key] = self._git("commit-tree", tree, "-p", parent, "-m", message, env=environment)
        return self.made[key]

    def remote_head(self, _remote: object, branch: str) -> str | None:
        path = self._repository.bare.path / "refs" / "heads" / branch
        return path.read_text().strip() if path.is_file() else None

    def push(self, remote: object, sha: str, branch: str, *, expected: str | None) -> None:
        before = self.remote_head(remote, branch)
        if before == sha:
            return
        self._git("update-ref", f"refs/heads/{branch}", sha, expected or "0" * 40)
        hub = self.hub._hub
        pulls.branches_moved(hub, self._repository, {branch: (before, sha)}, hub.state.bot)

    def _git(self, *arguments: str, env: dict[str, str] | None = None) -> str:
        return subprocess.check_output(["git", *arguments], cwd=self._repository.bare.path, env=env, text=True).strip()

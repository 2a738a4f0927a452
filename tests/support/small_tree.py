"""A repository of two files whose tests are one exit code, for stories about verdicts without a sandbox."""

import subprocess
from pathlib import Path
from typing import Any

from store.database import Database
from store.states import TaskKind
from tests.support.rows import add_task

BUGGY = "grep -q fixed notes.txt"
"""Tests that fail before they are given `fix`."""
SOUND = "! grep -q damaged notes.txt"
"""Tests that pass until they are given `damage`."""


class SmallTree:
    """`notes.txt`, and a Makefile whose target `test` looks into it; without `tests` there is none."""

    def __init__(self, folder: Path, tests: str = BUGGY) -> None:
        self.folder = folder
        folder.mkdir()
        (folder / "notes.txt").write_text("bug\n")
        if tests:
            (folder / "Makefile").write_text(f"test:\n\t@{tests}\n")
        for line in ("init -q -b main .", "add .", "-c user.name=a -c user.email=a@b.invalid commit -q -m base"):
            self._git(*line.split())

    @property
    def fix(self) -> str:
        return self.edit("notes.txt", "fixed\n")

    @property
    def damage(self) -> str:
        return self.edit("notes.txt", "damaged\n")

    def edit(self, path: str, text: str) -> str:
        """Return the patch that gives a file this text; the repository stays as it is."""
        old = (self.folder / path).read_text()
        (self.folder / path).write_text(text)
        patch = self._git("diff", "--full-index")
        (self.folder / path).write_text(old)
        return patch

    def add_task(self, database: Database, **changes: Any) -> int:
        """A local task on this repository."""
        values: dict[str, Any] = {
            "kind": TaskKind.LOCAL,
            "repository_id": None,
            "target_number": None,
            "target": str(self.folder),
            "base_ref": str(self.folder),
        }
        return add_task(database, **(values | changes))

    def _git(self, *arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=self.folder, check=True, capture_output=True, text=True)
        return done.stdout

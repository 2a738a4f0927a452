"""A small Python project with tests, as a git repository, and patches for it."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sandbox.checkout import Mirror

SOURCE = '''"""Sums and means."""


def total(numbers):
    result = 0
    for number in numbers:
        result += number
    return result


def mean(numbers):
    return total(numbers) / (len(numbers) - 1)
'''
TESTS = """from stats import total


def test_total():
    assert total([1, 2, 3]) == 6


def test_total_of_nothing():
    assert total([]) == 0
"""
FILES: Mapping[str, str] = {
    "stats.py": SOURCE,
    "tests/test_stats.py": TESTS,
    "pytest.ini": "[pytest]\npythonpath = .\n",
    ".gitignore": "*.log\n/scratch/\n",
    "README.md": "# Stats\n",
}
NEW_TEST = """

def test_mean():
    from stats import mean

    assert mean([1, 2, 3]) == 2
"""


@dataclass(frozen=True)
class SmallProject:
    mirror: Mirror
    sha: str
    folder: Path

    def patch(self, changes: Mapping[str, str | bytes | None]) -> str:
        """Return the patch that writes (or, with None, deletes) files."""
        for name, content in changes.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if content is None:
                path.unlink()
            else:
                path.write_bytes(content if isinstance(content, bytes) else content.encode())
        git(self.folder, "add", "-A")
        arguments = ("diff", "--cached", "--binary", "--full-index", "--no-renames", "HEAD")
        patch = git(self.folder, *arguments)
        git(self.folder, "reset", "-q", "--hard", "HEAD")
        return patch

    def archive(self, destination: Path) -> Path:
        self.mirror.archive(self.sha, destination)
        return destination


def small_project(root: Path, changes: Mapping[str, str | None] | None = None) -> SmallProject:
    """Make the project, with some files changed or (None) left out."""
    folder = root / "project"
    for name, content in {**FILES, **(changes or {})}.items():
        if content is not None:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(content)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A", "-f")
    git(folder, "commit", "-q", "-m", "base")
    checkout = Mirror.from_local(folder, root / "mirror.git")
    return SmallProject(checkout.mirror, checkout.head_sha, folder)


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder of the tests' own and return its output."""
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@localhost", *arguments]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return done.stdout.decode()

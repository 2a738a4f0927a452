"""Makes small git repositories for tests, as a person would: with git's own command line."""

import os
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path

_ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
}


def git(folder: Path, *arguments: str, stdin: str = "") -> str:
    """Run git in `folder` and return its stdout."""
    command = ["git", *arguments]
    done = subprocess.run(
        command, cwd=folder, env=_ENVIRONMENT, input=stdin, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def make_repository(folder: Path, files: Mapping[str, str], links: Mapping[str, str] | None = None) -> str:
    """Make a repository with one commit of `files` and symbolic `links`, and return the commit's SHA."""
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    return commit_files(folder, files, links)


def commit_files(folder: Path, files: Mapping[str, str], links: Mapping[str, str] | None = None) -> str:
    """Commit `files` on top of what is there, and return the commit's SHA."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    for name, target in (links or {}).items():
        (folder / name).symlink_to(target)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "A change")
    return git(folder, "rev-parse", "HEAD")


def make_archive(path: Path, files: Mapping[str, str]) -> Path:
    """Write an uncompressed tar of `files`, as `Mirror.archive` does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = path.with_suffix(".files")
    for name, text in files.items():
        (content / name).parent.mkdir(parents=True, exist_ok=True)
        (content / name).write_text(text, encoding="utf-8")
    with tarfile.open(path, "w") as tar:
        for name in files:
            tar.add(content / name, name)
    return path

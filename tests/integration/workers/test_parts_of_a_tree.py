"""What is no part of a commit itself is fetched where the repository says so, and what is missing is told."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sandbox.checkout import Mirror
from sandbox.remotes import GitRemote
from store.repo_config import parse_repository_config
from tests.support.lfs import LfsHost, file_of, lfs_host
from tests.support.repositories import git, make_repository
from tests.support.rows import settings
from workers.forge_target import ForgeTarget
from workers.ports import Forge


@pytest.fixture
def host() -> Iterator[LfsHost]:
    with lfs_host() as server:
        yield server


def missing(config: str, tmp_path: Path, host: LfsHost) -> tuple[list[str], bytes]:
    """Return what a worker says is missing of a tree with a picture and a submodule, and the picture's content."""
    upstream, modules = tmp_path / "upstream", '[submodule "m"]\n\tpath = m\n\turl = https://evil.example/m\n'
    make_repository(upstream, {"logo.png": host.add(b"a picture"), ".gitmodules": modules})
    git(upstream, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},m")
    git(upstream, "commit", "--quiet", "--message", "A submodule")
    mirror = Mirror(tmp_path / "mirror.git", allow_local=True)
    mirror.fetch(GitRemote(str(upstream)), ["refs/heads/main"], timeout_s=30)
    sha = mirror.resolve("refs/heads/main")
    forge = SimpleNamespace(git_remote=lambda _repository, *, write: GitRemote(host.url, token="read" * (not write)))
    run: Any = SimpleNamespace(runtime=SimpleNamespace(settings=settings()))
    target = ForgeTarget(cast("Forge", forge), cast("Any", None))
    told = target._fetch_parts(run, mirror, sha, parse_repository_config(config))
    mirror.archive(sha, tmp_path / "tree.tar")
    return list(told), file_of(tmp_path / "tree.tar", "logo.png")


def test_nothing_is_fetched_that_nobody_asked_for(tmp_path: Path, host: LfsHost) -> None:
    told, picture = missing("", tmp_path, host)
    assert told == []
    assert picture.startswith(b"version https://git-lfs")
    assert host.requests == []


def test_lfs_files_and_submodules_are_asked_for_and_each_tells_what_is_missing(tmp_path: Path, host: LfsHost) -> None:
    told, picture = missing("lfs: true\nsubmodules: true\n", tmp_path, host)
    assert picture == b"a picture"
    [sentence] = told
    assert sentence.startswith("The submodule 'm' is missing: 'https://evil.example/m' is not on 127.0.0.1")

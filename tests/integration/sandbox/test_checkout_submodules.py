"""Submodules come from the repository's own host alone, at their one commit, and are files of the tree then."""

import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import submodules
from sandbox.checkout import Mirror
from sandbox.errors import CheckoutError, RemoteUnavailable
from sandbox.remotes import GitRemote
from sandbox.submodules import allowed_url
from tests.support.refusing_host import answering
from tests.support.repositories import commit_files, git, make_repository
from tests.support.services import free_port


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    """A repository with a submodule, which has a file, a link and a submodule of its own."""
    make_repository(
        tmp_path / "module", {"data.txt": "from the module\n", "a/b.txt": "b\n"}, links={"link": "data.txt"}
    )
    make_repository(tmp_path / "upstream", {"main.txt": "main\n"})
    link(tmp_path / "upstream", "vendor/module", "../module", git(tmp_path / "module", "rev-parse", "HEAD"))
    return tmp_path / "upstream"


def link(folder: Path, path: str, url: str, sha: str) -> None:
    git(folder, "update-index", "--add", "--cacheinfo", f"160000,{sha},{path}")
    with (folder / ".gitmodules").open("a") as file:
        file.write(f'[submodule "{path}"]\n\tpath = {path}\n\turl = {url}\n')
    git(folder, "add", ".gitmodules")
    git(folder, "commit", "--quiet", "--message", "A submodule")


def newest(tmp_path: Path, upstream: Path) -> tuple[Mirror, str]:
    mirror = Mirror(tmp_path / "mirror.git", allow_local=True)
    mirror.fetch(GitRemote(str(upstream)), ["refs/heads/main"], timeout_s=30)
    return mirror, mirror.resolve("refs/heads/main")


def names(mirror: Mirror, sha: str, path: Path) -> list[str]:
    mirror.archive(sha, path)
    with tarfile.open(path) as tar:
        return sorted(member.name for member in tar if not member.isdir())


def test_a_submodules_files_are_in_the_tree_once_it_was_fetched(tmp_path: Path, upstream: Path) -> None:
    mirror, sha = newest(tmp_path, upstream)
    assert names(mirror, sha, tmp_path / "tree.tar") == [".gitmodules", "main.txt"]
    commit_files(tmp_path / "module", {"later.txt": "not pinned\n"})
    assert mirror.fetch_submodules(GitRemote(str(upstream)), sha, timeout_s=30) == []
    inside = ["vendor/module/a/b.txt", "vendor/module/data.txt", "vendor/module/link"]
    assert names(mirror, sha, tmp_path / "tree.tar") == [".gitmodules", "main.txt", *inside]
    with tarfile.open(tmp_path / "tree.tar") as tar:
        file = tar.extractfile("vendor/module/data.txt")
        assert file is not None
        assert file.read() == b"from the module\n"
    (tmp_path / "module").rename(tmp_path / "gone")
    assert mirror.fetch_submodules(GitRemote(str(upstream)), sha, timeout_s=30) == []
    tree = mirror.tree_with_patch(sha, "--- a/main.txt\n+++ b/main.txt\n@@ -1 +1 @@\n-main\n+patched\n")
    assert "vendor/module/data.txt" in names(mirror, tree, tmp_path / "patched.tar")


def test_what_cannot_be_had_is_named(tmp_path: Path, upstream: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link(upstream, "elsewhere", "https://evil.example/x", "1" * 40)
    link(upstream, "unknown", "../module", "2" * 40)
    git(upstream, "update-index", "--add", "--cacheinfo", f"160000,{'3' * 40},unsaid")
    git(upstream, "commit", "--quiet", "--message", "no url")
    mirror, sha = newest(tmp_path, upstream)
    missing = mirror.fetch_submodules(GitRemote(str(upstream)), sha, timeout_s=30)
    assert [sentence.split(" is missing: ")[0] for sentence in missing] == [
        "The submodule 'elsewhere'",
        "The submodule 'unknown'",
        "The submodule 'unsaid'",
    ]
    assert "is not on this machine" in missing[0]
    monkeypatch.setattr(submodules, "MOST", 2)
    assert mirror.fetch_submodules(GitRemote(str(upstream)), sha, timeout_s=30)[0].startswith("It has 4 submodules")


def test_a_submodule_that_is_too_large_is_not_taken(
    tmp_path: Path, upstream: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror, sha = newest(tmp_path, upstream)
    monkeypatch.setattr(submodules, "_PACK_LIMIT", 64)
    (sentence,) = mirror.fetch_submodules(GitRemote(str(upstream)), sha, timeout_s=30)
    assert "it takes more than 0 MB" in sentence
    assert names(mirror, sha, tmp_path / "tree.tar") == [".gitmodules", "main.txt"]


@pytest.fixture
def host(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a repository whose host answers every request with one status."""
    with answering(request.param) as url:
        yield f"{url}/upstream"


@pytest.mark.parametrize("host", [500, 503, 429], indirect=True)
def test_a_host_that_fails_is_asked_again_later(tmp_path: Path, upstream: Path, host: str) -> None:
    mirror, sha = newest(tmp_path, upstream)
    with pytest.raises(RemoteUnavailable, match=r"'vendor/module' cannot be fetched: .*returned error: \d+"):
        mirror.fetch_submodules(GitRemote(host), sha, timeout_s=30)


def test_a_host_that_cannot_be_reached_is_asked_again_later(tmp_path: Path, upstream: Path) -> None:
    mirror, sha = newest(tmp_path, upstream)
    with pytest.raises(RemoteUnavailable):
        mirror.fetch_submodules(GitRemote(f"http://127.0.0.1:{free_port()}/upstream"), sha, timeout_s=30)


@pytest.mark.parametrize("host", [404, 403, 401], indirect=True)
def test_what_a_host_does_not_give_is_missing(tmp_path: Path, upstream: Path, host: str) -> None:
    mirror, sha = newest(tmp_path, upstream)
    (sentence,) = mirror.fetch_submodules(GitRemote(host), sha, timeout_s=30)
    assert sentence.startswith("The submodule 'vendor/module' is missing: ")


def test_a_path_of_a_submodule_is_checked_as_any_other(tmp_path: Path, upstream: Path) -> None:
    blob = git(tmp_path / "module", "rev-parse", "HEAD:data.txt")
    tree = git(tmp_path / "module", "rev-parse", "HEAD:a")
    listing = f"100644 blob {blob}\tdata.txt\n040000 tree {tree}\t.."
    script = f"printf '{listing}\\n' | git mktree"
    evil = git(tmp_path / "module", "-c", f"alias.mk=!{script}", "mk")
    commit = git(tmp_path / "module", "commit-tree", evil, "-m", "evil")
    git(tmp_path / "module", "update-ref", "refs/heads/main", commit)
    link(upstream, "evil", "../module", commit)
    mirror, sha = newest(tmp_path, upstream)
    assert mirror.fetch_submodules(GitRemote(str(upstream)), sha, timeout_s=30) == []
    with pytest.raises(CheckoutError, match="outside of the tree"):
        mirror.archive(sha, tmp_path / "tree.tar")


HOME = GitRemote("https://github.example/acme/app.git")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("../lib.git", "https://github.example/acme/lib.git"),
        ("../../other/lib", "https://github.example/other/lib"),
        ("https://github.example/other/lib", "https://github.example/other/lib"),
        ("git@github.example:other/lib.git", "https://github.example/other/lib.git"),
        ("ssh://git@github.example/other/lib.git", "https://github.example/other/lib.git"),
    ],
)
def test_a_submodule_is_fetched_from_the_same_host(url: str, expected: str) -> None:
    assert allowed_url(url, HOME) == expected


@pytest.mark.parametrize(
    "url",
    ["https://evil.example/x", "http://github.example/x", "https://github.example:8443/x", "https://u:p@github.example/x",
     "git@evil.example:x", "/etc", "file:///etc", "ext::sh -c id", "git://github.example/x", "--upload-pack=id",
     "https://[github.example/x"],
)  # fmt: skip
def test_any_other_place_is_refused(url: str) -> None:
    with pytest.raises(CheckoutError, match=r"is not on github\.example"):
        allowed_url(url, HOME)


def test_a_hostile_gitmodules_does_not_stall_who_reads_it() -> None:
    text = '[submodule "a"]\n\tpath = a' + " " * 900_000 + "b\n\turl = ../c  \n"
    ((path, url),) = submodules._paths_and_urls(text)
    assert (path[0], path[-1], url) == ("a", "b", "../c")

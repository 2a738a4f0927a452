"""Files that Git LFS keeps elsewhere stand in the archives once they were fetched, and nothing else in their place."""

import base64
import hashlib
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import lfs
from sandbox.checkout import Mirror
from sandbox.errors import CheckoutError, PatchError, RemoteUnavailable
from sandbox.remotes import GitRemote
from tests.support.lfs import LfsHost, file_of, lfs_host, pointer
from tests.support.repositories import commit_files, make_repository
from tests.support.services import free_port

PICTURE, SOUND = b"\x89PNG\r\n" + bytes(range(256)) * 40, b"RIFF" + bytes(5000)


@pytest.fixture
def host() -> Iterator[LfsHost]:
    with lfs_host() as server:
        yield server


@pytest.fixture
def upstream(tmp_path: Path, host: LfsHost) -> Path:
    """A repository with two pointers, and with files that only look like some."""
    files = {
        ".gitattributes": "*.png filter=lfs diff=lfs merge=lfs -text\n",
        ".lfsconfig": "[lfs]\n\turl = https://evil.example/\n",
        "art/logo.png": host.add(PICTURE),
        "art/ding.wav": host.add(SOUND),
        "copy.png": pointer(PICTURE),
        "no.txt": pointer(b"x") + "more\n",
        "text.txt": "x" * 130,
    }
    make_repository(tmp_path / "upstream", files)
    return tmp_path / "upstream"


@pytest.fixture
def mirror(tmp_path: Path, upstream: Path) -> Mirror:
    made = Mirror(tmp_path / "mirror.git", allow_local=True)
    made.fetch(GitRemote(str(upstream)), ["refs/heads/main"], timeout_s=30)
    return made


def fetch(mirror: Mirror, host: LfsHost) -> list[str]:
    sha = mirror.resolve("refs/heads/main")
    return list(mirror.fetch_lfs(GitRemote(host.url, token="t0ken"), sha, timeout_s=30))


def content(mirror: Mirror, tmp_path: Path, name: str) -> bytes:
    mirror.archive(mirror.resolve("refs/heads/main"), tmp_path / "tree.tar")
    return file_of(tmp_path / "tree.tar", name)


def test_the_files_stand_in_place_of_their_pointers(mirror: Mirror, host: LfsHost, tmp_path: Path) -> None:
    assert content(mirror, tmp_path, "art/logo.png") == pointer(PICTURE).encode()
    assert fetch(mirror, host) == []
    assert content(mirror, tmp_path, "art/logo.png") == content(mirror, tmp_path, "copy.png") == PICTURE
    assert content(mirror, tmp_path, "art/ding.wav") == SOUND
    assert content(mirror, tmp_path, "no.txt") == (pointer(b"x") + "more\n").encode()
    assert content(mirror, tmp_path, "text.txt") == b"x" * 130

    batch, *downloads = host.requests
    assert batch["body"]["operation"] == "download"
    assert batch["body"]["objects"] == [
        {"oid": hashlib.sha256(one).hexdigest(), "size": len(one)} for one in (SOUND, PICTURE)
    ]
    assert batch["authorization"] == "Basic " + base64.b64encode(b"x-access-token:t0ken").decode()
    # The token is for the batch request alone: files may lie on anybody's machine.
    assert [one["authorization"] for one in downloads] == ["RemoteAuth signed"] * 2


def test_what_is_here_is_not_fetched_again(mirror: Mirror, host: LfsHost) -> None:
    fetch(mirror, host)
    host.requests.clear()
    assert fetch(mirror, host) == []
    assert host.requests == []


def test_a_repository_without_pointers_asks_nobody(tmp_path: Path, host: LfsHost) -> None:
    make_repository(tmp_path / "plain", {"a.txt": "a\n"})
    plain = Mirror(tmp_path / "plain.git", allow_local=True)
    plain.fetch(GitRemote(str(tmp_path / "plain")), ["refs/heads/main"], timeout_s=30)
    assert fetch(plain, host) == []
    assert host.requests == []


def test_a_patch_beside_the_files_applies_and_one_of_a_file_does_not(
    mirror: Mirror, host: LfsHost, tmp_path: Path
) -> None:
    fetch(mirror, host)
    sha = mirror.resolve("refs/heads/main")
    line = "x" * 130
    beside = f"--- a/text.txt\n+++ b/text.txt\n@@ -1 +1 @@\n-{line}\n\\ No newline at end of file\n+y\n"
    mirror.archive(mirror.tree_with_patch(sha, beside), tmp_path / "patched.tar")
    assert file_of(tmp_path / "patched.tar", "text.txt") == b"y\n"
    assert file_of(tmp_path / "patched.tar", "art/logo.png") == PICTURE
    with pytest.raises(PatchError):
        mirror.tree_with_patch(sha, "--- a/copy.png\n+++ b/copy.png\n@@ -1 +1 @@\n-content\n+other\n")


def test_another_file_than_the_pointer_says_is_not_taken(mirror: Mirror, host: LfsHost, tmp_path: Path) -> None:
    host.contents = dict.fromkeys(host.contents, b"evil")
    [sentence] = fetch(mirror, host)
    assert sentence == "2 LFS files are missing, 'art/ding.wav' the first: " + (
        "what the server gives is another file than the pointer says."
    )
    assert content(mirror, tmp_path, "art/logo.png") == pointer(PICTURE).encode()


def test_more_bytes_than_the_pointer_says_are_not_waited_for(mirror: Mirror, host: LfsHost) -> None:
    host.contents = {oid: found * 2 for oid, found in host.contents.items()}
    assert all("more than" in sentence for sentence in fetch(mirror, host))


def test_a_file_that_the_server_lacks_is_missing_and_the_others_are_not(
    mirror: Mirror, host: LfsHost, tmp_path: Path
) -> None:
    del host.contents[hashlib.sha256(SOUND).hexdigest()]
    assert fetch(mirror, host) == ["The LFS file 'art/ding.wav' is missing: the server does not have it."]
    assert content(mirror, tmp_path, "art/logo.png") == PICTURE


@pytest.mark.parametrize("status", [429, 500, 503])
@pytest.mark.parametrize("what", ["batch_status", "file_status"])
def test_a_server_that_fails_is_asked_again_later(mirror: Mirror, host: LfsHost, what: str, status: int) -> None:
    setattr(host, what, status)
    with pytest.raises(RemoteUnavailable, match=f"HTTP {status}"):
        fetch(mirror, host)


def test_a_server_that_cannot_be_reached_is_asked_again_later(mirror: Mirror, host: LfsHost) -> None:
    host.url = f"http://127.0.0.1:{free_port()}/acme/app"
    with pytest.raises(RemoteUnavailable, match="cannot be fetched"):
        fetch(mirror, host)


@pytest.mark.parametrize("status", [301, 302, 401, 403, 404, 422])
@pytest.mark.parametrize("what", ["batch_status", "file_status"])
def test_a_refusal_is_believed_and_a_redirect_not_followed(
    mirror: Mirror, host: LfsHost, what: str, status: int
) -> None:
    setattr(host, what, status)
    [sentence] = fetch(mirror, host)
    assert sentence.startswith("2 LFS files are missing")
    assert f"HTTP {status}" in sentence


@pytest.mark.parametrize(
    "answer", [b"", b"[]", b"{}", b"\xff", b'{"objects": [{"oid": 3}]}', json.dumps({"objects": "x"}).encode()]
)
def test_an_answer_that_cannot_be_read_is_none(mirror: Mirror, host: LfsHost, answer: bytes) -> None:
    host.batch_answer = answer
    [sentence] = fetch(mirror, host)
    assert "the server's answer cannot be read" in sentence


@pytest.mark.parametrize("href", ["file:///etc/passwd", "ftp://127.0.0.1/x", "/etc/passwd", "gopher://x"])
def test_no_other_protocol_is_spoken(mirror: Mirror, host: LfsHost, href: str) -> None:
    host.href = href
    [sentence] = fetch(mirror, host)
    assert sentence.startswith("2 LFS files are missing")


def test_the_size_of_all_files_together_is_bounded(
    mirror: Mirror, host: LfsHost, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(lfs, "SIZE_LIMIT", len(SOUND) + 1)
    [sentence] = fetch(mirror, host)
    assert sentence.startswith("The LFS file 'art/logo.png' is missing: 1000 are fetched at most")
    assert content(mirror, tmp_path, "art/ding.wav") == SOUND


def test_the_bounds_hold_for_a_tree_however_often_it_is_asked_for(
    mirror: Mirror, host: LfsHost, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(lfs, "SIZE_LIMIT", len(PICTURE) + 1)
    first = fetch(mirror, host)
    asked = len(host.requests)
    assert (
        fetch(mirror, host) == first == ["The LFS file 'art/logo.png' is missing: 1000 are fetched at most, and 0 MB."]
    )
    assert len(host.requests) == asked
    assert content(mirror, tmp_path, "art/logo.png") == pointer(PICTURE).encode()


def test_what_was_fetched_for_other_trees_does_not_widen_the_bounds_of_this_one(
    mirror: Mirror, host: LfsHost, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert fetch(mirror, host) == []
    monkeypatch.setattr(lfs, "MOST", 1)
    assert content(mirror, tmp_path, "art/ding.wav") == SOUND
    assert content(mirror, tmp_path, "art/logo.png") == pointer(PICTURE).encode()


def test_a_link_whose_target_reads_like_a_pointer_stays_a_link(
    mirror: Mirror, host: LfsHost, upstream: Path, tmp_path: Path
) -> None:
    commit_files(upstream, {}, {"link": pointer(PICTURE)})
    mirror.fetch(GitRemote(str(upstream)), ["refs/heads/main"], timeout_s=30)
    assert fetch(mirror, host) == []
    assert content(mirror, tmp_path, "art/logo.png") == PICTURE
    with tarfile.open(tmp_path / "tree.tar") as tar:
        assert tar.getmember("link").linkname == pointer(PICTURE)


def test_a_local_repository_has_no_server(mirror: Mirror, upstream: Path) -> None:
    with pytest.raises(CheckoutError, match="over https or http only"):
        mirror.fetch_lfs(GitRemote(str(upstream)), mirror.resolve("refs/heads/main"), timeout_s=5)

"""What a hostile repository, patch, ref or remote tries against the host's git."""

import http.server
import io
import os
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.archives import check_archive
from sandbox.checkout import Mirror
from sandbox.errors import CheckoutError, PatchError, PushError
from sandbox.remotes import GitRemote
from tests.support.repositories import git, make_repository

TOKEN = "ghs_canary0123456789"


def fetched(tmp_path: Path, upstream: Path) -> tuple[Mirror, str]:
    mirror = Mirror(tmp_path / "mirror.git", allow_local=True)
    mirror.fetch(GitRemote(str(upstream)), ["refs/heads/main"], timeout_s=30)
    return mirror, mirror.resolve("refs/heads/main")


def test_attributes_of_the_tree_do_nothing(tmp_path: Path) -> None:
    files = {
        ".gitattributes": "secret.py export-ignore\nid.txt export-subst ident\n*.txt text eol=crlf\n*.py filter=evil\n",
        "secret.py": "x = 1\n",
        "id.txt": "$Format:%H$ $Id$\n",
    }
    make_repository(tmp_path / "upstream", files)
    mirror, sha = fetched(tmp_path, tmp_path / "upstream")
    mirror.archive(sha, tmp_path / "tree.tar")
    with tarfile.open(tmp_path / "tree.tar") as tar:
        assert sorted(tar.getnames()) == [".gitattributes", "id.txt", "secret.py"]
        file = tar.extractfile("id.txt")
        assert file is not None
        assert file.read() == b"$Format:%H$ $Id$\n"


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    make_repository(tmp_path / "upstream", {"a.txt": "a\n"}, links={"passwd": "/etc/passwd"})
    mirror, sha = fetched(tmp_path, tmp_path / "upstream")
    mirror.archive(sha, tmp_path / "tree.tar")
    with tarfile.open(tmp_path / "tree.tar") as tar:
        assert tar.getmember("passwd").issym()


def test_hooks_and_settings_of_a_local_repository_do_not_run(tmp_path: Path) -> None:
    upstream = tmp_path / "upstream"
    canary = tmp_path / "canary"
    make_repository(upstream, {"a.txt": "a\n", ".gitattributes": "* filter=evil diff=evil\n"})
    script = tmp_path / "evil.sh"
    script.write_text(f"#!/bin/sh\ntouch {canary}\ncat\n", encoding="utf-8")
    script.chmod(0o755)
    for key in (
        "core.fsmonitor",
        "filter.evil.clean",
        "filter.evil.smudge",
        "diff.evil.textconv",
        "diff.external",
        "uploadpack.packObjectsHook",
        "core.sshCommand",
        "core.editor",
        "credential.helper",
    ):
        git(upstream, "config", key, str(script))
    hooks = upstream / ".git" / "hooks"
    for hook in ("post-checkout", "pre-receive", "update", "post-update", "reference-transaction", "post-index-change"):
        (hooks / hook).write_bytes(script.read_bytes())
        (hooks / hook).chmod(0o755)
    canary.unlink(missing_ok=True)
    (upstream / "a.txt").write_text("changed\n", encoding="utf-8")
    taken = Mirror.from_local(upstream, tmp_path / "mirror.git")
    taken.mirror.archive(taken.head_sha, tmp_path / "tree.tar")
    taken.mirror.tree_with_patch(taken.head_sha, "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\n+b\n")
    assert taken.uncommitted == ["a.txt"]
    assert not canary.exists()


@pytest.mark.parametrize(
    "patch",
    [
        "--- /dev/null\n+++ b/../outside.txt\n@@ -0,0 +1 @@\n+x\n",
        "--- /dev/null\n+++ b/.git/hooks/pre-commit\n@@ -0,0 +1 @@\n+x\n",
        "diff --git a/link/x b/link/x\nnew file mode 100644\n--- /dev/null\n+++ b/link/x\n@@ -0,0 +1 @@\n+x\n",
        "diff --git a/evil b/evil\nnew file mode 120000\n--- /dev/null\n+++ b/evil\n@@ -0,0 +1 @@\n+/tmp\n"
        "\\ No newline at end of file\n"
        "diff --git a/evil/x b/evil/x\nnew file mode 100644\n--- /dev/null\n+++ b/evil/x\n@@ -0,0 +1 @@\n+x\n",
        "this is no patch",
    ],
    ids=["dot-dot", "git-folder", "through-a-link", "new-link-then-through-it", "garbage"],
)
def test_a_patch_that_leaves_the_tree_is_refused(tmp_path: Path, patch: str) -> None:
    make_repository(tmp_path / "upstream", {"a.txt": "a\n"}, links={"link": "/tmp"})
    mirror, sha = fetched(tmp_path, tmp_path / "upstream")
    with pytest.raises(PatchError):
        mirror.tree_with_patch(sha, patch)


def test_an_absolute_path_in_a_patch_stays_in_the_tree(tmp_path: Path) -> None:
    make_repository(tmp_path / "upstream", {"a.txt": "a\n"})
    mirror, sha = fetched(tmp_path, tmp_path / "upstream")
    target = tmp_path / "outside.txt"
    patch = f"--- /dev/null\n+++ {target}\n@@ -0,0 +1 @@\n+x\n"
    try:
        tree = mirror.tree_with_patch(sha, patch)
    except PatchError:
        tree = ""
    assert not target.exists()
    if tree:
        mirror.archive(tree, tmp_path / "tree.tar")  # checks every path


@pytest.mark.parametrize(
    "ref", ["--upload-pack=touch /tmp/x", "main", "refs/heads/../x", "+refs/heads/main", "refs/heads/a:refs/heads/b",
            "refs/heads/-\nx", "HEAD~1", "deadbeef", "refs/heads/a b"]
)  # fmt: skip
def test_only_full_ref_names_and_shas_reach_git(tmp_path: Path, ref: str) -> None:
    make_repository(tmp_path / "upstream", {"a.txt": "a\n"})
    mirror, _ = fetched(tmp_path, tmp_path / "upstream")
    with pytest.raises(CheckoutError, match="neither"):
        mirror.fetch(GitRemote(str(tmp_path / "upstream")), [ref], timeout_s=5)
    with pytest.raises(CheckoutError, match="neither"):
        mirror.resolve(ref)


@pytest.mark.parametrize("branch", ["", "../x", "a b", "x.lock", "a:b", "x\n"])
def test_a_branch_name_is_checked_before_a_push(tmp_path: Path, branch: str) -> None:
    make_repository(tmp_path / "upstream", {"a.txt": "a\n"})
    mirror, sha = fetched(tmp_path, tmp_path / "upstream")
    with pytest.raises(PushError, match="branch's name"):
        mirror.push(GitRemote(str(tmp_path / "upstream")), sha, branch, expected=None)


@pytest.mark.parametrize(
    "url",
    ["ext::sh -c touch% /tmp/x", "file:///etc", "/etc", "ssh://host/x", "git@host:x", "-oProxyCommand=x", "../x",
     "https://user:pw@example.org/x", "git://example.org/x", "http:///x"],
)  # fmt: skip
def test_other_protocols_are_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(CheckoutError) as refused:
        Mirror(tmp_path / "mirror.git").fetch(GitRemote(url), ["refs/heads/main"], timeout_s=5)
    assert "pw" not in str(refused.value)


class Recorder(http.server.BaseHTTPRequestHandler):
    """Answers 403 and echoes what it was sent, as a careless proxy does."""

    def do_GET(self) -> None:
        header = self.headers.get("Authorization", "")
        seen: list[str] = self.server.seen  # type: ignore[attr-defined]
        seen.append(header)
        body = f"refused: {header}".encode()
        self.send_response(403)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def recorder() -> Iterator[tuple[str, list[str]]]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    seen: list[str] = []
    server.seen = seen  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/acme/x.git", seen
    server.shutdown()
    server.server_close()
    thread.join()


def test_the_token_goes_to_the_remote_and_nowhere_else(tmp_path: Path, recorder: tuple[str, list[str]]) -> None:
    url, seen = recorder
    mirror = Mirror(tmp_path / "mirror.git")
    with pytest.raises(CheckoutError) as refused:
        mirror.fetch(GitRemote(url, token=TOKEN), ["refs/heads/main"], timeout_s=10)
    assert seen
    assert all(header.startswith("Basic ") for header in seen)
    secret = seen[0].removeprefix("Basic ")
    assert TOKEN not in str(refused.value)
    assert secret not in str(refused.value)
    kept = [path.read_bytes() for path in (tmp_path / "mirror.git").rglob("*") if path.is_file()]
    assert kept
    assert not any(word.encode() in content for content in kept for word in (TOKEN, secret))
    assert not any(TOKEN in value or secret in value for value in os.environ.values())


def archive_of(path: Path, *members: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w") as tar:
        for member in members:
            tar.addfile(member, io.BytesIO(b"x" * member.size))
    return path


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = target
    return info


@pytest.mark.parametrize(
    "members",
    [
        [member("../escape")],
        [member("/etc/passwd")],
        [member("a/../../b")],
        [member(".git/config")],
        [member("sub/.GIT/hooks/x")],
        [member("link", tarfile.SYMTYPE, "/etc"), member("link/passwd")],
        [member("link", tarfile.SYMTYPE, "/etc/passwd"), member("link")],
        [member("hard", tarfile.LNKTYPE, "/etc/passwd")],
        [member("null", tarfile.CHRTYPE)],
        [member("pipe", tarfile.FIFOTYPE)],
    ],
    ids=lambda members: members[-1].name,
)
def test_an_archive_that_escapes_is_refused(tmp_path: Path, members: list[tarfile.TarInfo]) -> None:
    with pytest.raises(CheckoutError):
        check_archive(archive_of(tmp_path / "evil.tar", *members))


def test_a_file_that_is_no_archive_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.tar").write_bytes(b"\x1f\x8b no tar")
    with pytest.raises(CheckoutError, match=r"x\.tar is not an uncompressed tar"):
        check_archive(tmp_path / "x.tar")

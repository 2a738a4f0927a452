"""The patch is what the agent changed, exactly, whatever it does to git, attributes and names."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import baseline
from sandbox.errors import PatchError
from sandbox.patch import inspect_patch
from sandbox.types import TRUSTED, Backend, Sandbox, SandboxSpec
from tests.support.backends import LABELS, backend
from tests.support.small_project import SmallProject, small_project

__all__ = ["backend"]


@pytest.fixture
def project(tmp_path: Path) -> SmallProject:
    return small_project(tmp_path)


@pytest.fixture
def box(backend: Backend, project: SmallProject, tmp_path: Path) -> Iterator[Sandbox]:
    sandbox = backend.open(SandboxSpec(backend.ensure_base(), LABELS))
    try:
        sandbox.put_tree(project.archive(tmp_path / "tree.tar"))
        baseline.lay(sandbox)
        yield sandbox
    finally:
        sandbox.close()


def sh(box: Sandbox, command: str) -> str:
    result = box.execute(command, timeout_s=30)
    assert result.exit_code == 0, result.output
    return result.output


def files_of(tmp_path: Path, project: SmallProject, patch: str) -> dict[str, bytes]:
    """Return the files of the base tree with the patch, as git on the host makes them."""
    import tarfile

    tree = project.mirror.tree_with_patch(project.sha, patch)
    project.mirror.archive(tree, tmp_path / "patched.tar")
    with tarfile.open(tmp_path / "patched.tar") as tar:
        return {m.name: f.read() for m in tar if (f := tar.extractfile(m) if m.isfile() else None)}


def test_nothing_changed_is_an_empty_patch(box: Sandbox) -> None:
    sh(box, "touch stats.py; git commit -q --allow-empty -m x 2>/dev/null || true")
    assert baseline.take_patch(box) == ""


def test_changes_additions_and_deletions_are_all_in_it(box: Sandbox, project: SmallProject, tmp_path: Path) -> None:
    sh(box, "echo '# more' >> stats.py; mkdir -p 'new dir'; echo hi > 'new dir/ünï.txt'; rm README.md")
    patch = baseline.take_patch(box)
    report = inspect_patch(patch)
    assert {f.path: f.kind for f in report.files} == {
        "stats.py": "modified",
        "new dir/ünï.txt": "added",
        "README.md": "deleted",
    }
    assert not report.rejected
    files = files_of(tmp_path, project, patch)
    assert files["new dir/ünï.txt"] == b"hi\n"
    assert "README.md" not in files


def test_what_builds_leave_and_the_repository_ignores_is_left_out(box: Sandbox) -> None:
    sh(
        box,
        "mkdir -p __pycache__ .pytest_cache scratch x.egg-info sub/scratch && touch __pycache__/a.pyc a.log scratch/b "
        ".pytest_cache/c x.egg-info/d sub/scratch/kept && : > .gitignore",
    )
    report = inspect_patch(baseline.take_patch(box))
    assert sorted(f.path for f in report.files) == [".gitignore", "sub/scratch/kept"]


def test_a_commit_of_the_agent_changes_nothing(box: Sandbox) -> None:
    sh(box, "echo '# more' >> stats.py && git -c user.name=a -c user.email=a@b commit -qam done && rm -rf .git")
    assert "+# more" in baseline.take_patch(box)


def test_line_ends_and_bytes_that_are_not_utf8_arrive_exactly(
    box: Sandbox, project: SmallProject, tmp_path: Path
) -> None:
    sh(
        box,
        r"printf 'a\r\nb\r\n' > crlf.txt; printf 'caf\351\n' > latin1.txt; printf '\0\1\2' > blob.bin;"
        r" printf 'no end' > open.txt; printf '[x]*?\\ \351' > 'odd [x]*.txt'",
    )
    patch = baseline.take_patch(box)
    patch.encode("utf-8")
    files = files_of(tmp_path, project, patch)
    assert files["crlf.txt"] == b"a\r\nb\r\n"
    assert files["latin1.txt"] == b"caf\xe9\n"
    assert files["blob.bin"] == b"\0\1\2"
    assert files["open.txt"] == b"no end"
    assert files["odd [x]*.txt"] == b"[x]*?\\ \xe9"
    assert {f.path for f in inspect_patch(patch).files if f.binary} == {"latin1.txt", "blob.bin", "odd [x]*.txt"}


def test_a_name_that_is_not_utf8_is_refused_and_its_patch_is_text(box: Sandbox) -> None:
    sh(box, r"printf 'x = 1\r\n' > $'caf\xe9.py'; mkdir $'d\xff'; echo x > $'d\xff/a.py'")
    patch = baseline.take_patch(box)
    patch.encode("ascii")
    report = inspect_patch(patch)
    assert len(report.files) == len(report.rejected) == 2
    assert all("not UTF-8" in reason for reason in report.rejected)
    "".join(report.rejected).encode("ascii")


def test_attributes_filters_and_configuration_of_the_tree_do_not_act(box: Sandbox) -> None:
    sh(
        box,
        "printf '* text eol=crlf ident filter=evil diff=evil\\n' > .gitattributes;"
        "git config filter.evil.clean 'touch /tmp/evil; cat'; git config diff.evil.textconv 'touch /tmp/evil; cat';"
        "git config core.fsmonitor 'touch /tmp/evil'; git config core.hooksPath /workspace/hooks;"
        "printf '[filter \"evil\"]\\n clean = touch /tmp/evil\\n' > ~/.gitconfig;"
        "printf 'x = 1\\r\\n$Id$\\n' > stats.py",
    )
    patch = baseline.take_patch(box)
    assert "+x = 1\r\n+$Id$\n" in patch
    assert box.read_file("/tmp/evil") is None


@pytest.mark.parametrize(
    "tampering",
    [
        pytest.param(
            "git config -f config core.repositoryFormatVersion 1; git config -f config extensions.partialClone far;"
            "git config -f config remote.far.promisor true; git config -f config remote.far.url ext::/tmp/forge;"
            "git config -f config protocol.ext.allow always; "
            "id=$(printf '# Stats\\n' | git hash-object --stdin); find .. -path \"*/${id:0:2}/${id:2}\" -delete",
            id="a missing object that a program brings",
        ),
        pytest.param(
            "git config -f config filter.forge.clean /tmp/forge; printf '* filter=forge\\n' > info/attributes",
            id="a filter",
        ),
        pytest.param(
            "cp -r . /tmp/other; git config -f /tmp/other/config filter.forge.clean /tmp/forge;"
            "printf '/tmp/other\\n' > commondir; mkdir -p /tmp/other/info; "
            "printf '* filter=forge\\n' | tee info/attributes > /tmp/other/info/attributes",
            id="a folder with another configuration",
        ),
    ],
)
def test_what_an_agent_of_the_same_user_writes_to_the_baseline_does_not_run(box: Sandbox, tampering: str) -> None:
    sh(box, "printf '#!/bin/sh\\ntouch /tmp/ran\\ncat\\n' > /tmp/forge; chmod +x /tmp/forge; echo changed > README.md")
    # As bubblewrap run by an ordinary user has it: there the agent may write all that is trusted.
    as_agent = box.execute(f"cd {TRUSTED}/baseline.git; {tampering}", timeout_s=30, trusted=True)
    assert as_agent.exit_code == 0, as_agent.output
    with contextlib.suppress(PatchError):
        assert "+changed" in baseline.take_patch(box)
    assert box.execute("ls /tmp/ran", timeout_s=30).exit_code != 0


def test_links_and_nested_repositories_are_seen_for_what_they_are(box: Sandbox) -> None:
    sh(box, "ln -s /etc/passwd link; mkdir inner && git -C inner init -q && touch inner/file; mkfifo pipe")
    report = inspect_patch(baseline.take_patch(box))
    assert [f.path for f in report.files] == ["link"]
    assert report.rejected == ["'link' is a symbolic link."]


def test_a_folder_turned_into_a_link_leads_nowhere(box: Sandbox) -> None:
    sh(box, "rm -r tests && ln -s /etc tests")
    report = inspect_patch(baseline.take_patch(box))
    assert {f.path: f.kind for f in report.files} == {"tests": "added", "tests/test_stats.py": "deleted"}
    assert report.rejected


def test_a_file_turned_into_a_pipe_is_an_error_in_words(box: Sandbox) -> None:
    sh(box, "rm stats.py && mkfifo stats.py")
    with pytest.raises(PatchError, match="special files"):
        baseline.take_patch(box)


def test_a_huge_change_is_refused(box: Sandbox) -> None:
    sh(box, "yes 0123456789 | head -c 6000000 > big.txt")
    with pytest.raises(PatchError, match="larger than 5 MB"):
        baseline.take_patch(box)


@pytest.mark.docker
def test_in_docker_the_agent_cannot_touch_the_baseline(tmp_path: Path, project: SmallProject) -> None:
    from tests.support.backends import make_backend

    docker = make_backend("docker", tmp_path)
    box = docker.open(SandboxSpec(docker.ensure_base(), LABELS))
    try:
        box.put_tree(project.archive(tmp_path / "tree.tar"))
        baseline.lay(box)
        for attempt in (f"ls {TRUSTED}", f"rm -rf {TRUSTED}", f"mv {TRUSTED} /tmp/x", f"echo x > {TRUSTED}/tree"):
            assert box.execute(attempt, timeout_s=20).exit_code != 0
        assert baseline.take_patch(box) == ""
    finally:
        box.close()

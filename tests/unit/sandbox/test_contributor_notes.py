"""The agent is told the customs of the repository, in the repository's own words."""

import io
import tarfile
from pathlib import Path

import pytest

from sandbox.notes import contributor_notes


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return tmp_path / "tree.tar"


def write(archive: Path, files: dict[str, bytes], links: dict[str, str] | None = None) -> None:
    with tarfile.open(archive, "w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        for name, to in (links or {}).items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, to
            tar.addfile(member)


def test_what_was_written_for_agents_comes_before_what_was_written_for_people(archive: Path) -> None:
    write(archive, {"CONTRIBUTING.md": b"Be kind.", "AGENTS.md": b"Use tabs."})
    assert contributor_notes(archive) == "Use tabs."


def test_an_empty_file_says_nothing(archive: Path) -> None:
    write(archive, {"AGENTS.md": b" \n", "docs/CONTRIBUTING.md": b"Sign your work."})
    assert contributor_notes(archive) == "Sign your work."


def test_a_repository_without_notes_has_none(archive: Path) -> None:
    write(archive, {"README.md": b"Hello."})
    assert contributor_notes(archive) == ""


def test_a_link_is_not_followed_and_bytes_that_are_no_text_do_no_harm(archive: Path) -> None:
    write(archive, {"CONTRIBUTING.md": b"caf\xe9"}, links={"AGENTS.md": "/etc/passwd"})
    assert contributor_notes(archive) == "caf\ufffd"


def test_long_notes_are_cut(archive: Path) -> None:
    write(archive, {"AGENTS.md": b"x" * 1_000_000})
    assert len(contributor_notes(archive)) == 20_000

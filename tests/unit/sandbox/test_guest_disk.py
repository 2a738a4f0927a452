"""What a set-up writes to the host's disk is counted as it is written, however it is hidden."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from sandbox.disk_bound import DiskExceeded, setup_error
from sandbox.guest_disk import LONGEST_S, DiskWatch
from sandbox.types import Limits

MB = 1 << 20


def watch(root: Path, **bound: int) -> DiskWatch:
    return DiskWatch({"root": str(root), "bytes": MB, "files": 100, "free": 0, **bound})


def test_what_was_there_before_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "base").write_bytes(bytes(3 * MB))
    watched = watch(tmp_path)
    (tmp_path / "new").write_bytes(bytes(MB // 2))
    assert watched.look() is None
    assert watched.exceeded() is None


def test_more_than_it_may_is_told_with_its_amount(tmp_path: Path) -> None:
    watched = watch(tmp_path)
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "new").write_bytes(bytes(2 * MB))
    exceeded = watched.look()
    assert exceeded is not None
    assert exceeded[0] == "bytes"
    assert exceeded[1] >= 2 * MB


def test_a_sparse_file_counts_as_long_as_it_says_it_is(tmp_path: Path) -> None:
    watched = watch(tmp_path)
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(2 * MB)
    assert (watched.exceeded() or [""])[0] == "bytes"


def test_empty_files_count_by_their_number_and_no_more_are_counted_than_it_takes(tmp_path: Path) -> None:
    watched = watch(tmp_path)
    for number in range(150):
        (tmp_path / f"{number}").write_bytes(b"")
    assert watched.exceeded() == ["files", 101]


def test_a_small_file_counts_as_the_block_that_it_takes(tmp_path: Path) -> None:
    watched = watch(tmp_path, files=1000)
    for number in range(300):
        (tmp_path / f"{number}").write_bytes(b"x")
    assert (watched.exceeded() or [""])[0] == "bytes"


def test_one_file_with_many_names_counts_once(tmp_path: Path) -> None:
    watched = watch(tmp_path)
    (tmp_path / "0").write_bytes(bytes(MB // 2))
    for number in range(1, 9):
        os.link(tmp_path / "0", tmp_path / f"{number}")
    assert watched.exceeded() is None


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "large").write_bytes(bytes(3 * MB))
    (tmp_path / "root").mkdir()
    watched = watch(tmp_path / "root")
    (tmp_path / "root" / "link").symlink_to(tmp_path / "outside")
    assert watched.exceeded() is None


def test_folders_too_deep_to_be_looked_into_are_no_hiding_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = watch(tmp_path)
    monkeypatch.chdir(tmp_path)
    for _ in range(20):  # longer than any path may be
        os.mkdir("d" * 250)  # noqa: PTH102
        os.chdir("d" * 250)
    assert watched.exceeded() == ["hidden", 0]


def test_the_disk_keeps_what_is_to_stay_free(tmp_path: Path) -> None:
    exceeded = watch(tmp_path, free=1 << 60).look()
    assert exceeded is not None
    assert exceeded[0] == "free"


@pytest.mark.parametrize(
    ("bytes_left", "lost", "told"),
    [
        pytest.param(MB, 0, None, id="nothing has changed"),
        pytest.param(MB, 2 * MB, "bytes", id="more was written than may be"),
        pytest.param(1000 * MB, 60 * MB, "free", id="others fill the disk"),
    ],
)
def test_soon_after_a_look_only_a_disk_that_was_written_to_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bytes_left: int, lost: int, told: str | None
) -> None:
    moments = [100.0]
    monkeypatch.setattr("sandbox.guest_disk.time", SimpleNamespace(monotonic=lambda: moments[0]))
    free = [100 * MB]
    monkeypatch.setattr(DiskWatch, "free_now", lambda _watch: free[0])
    watched = watch(tmp_path, bytes=bytes_left, free=50 * MB)
    assert watched.look() is None
    (tmp_path / "large").write_bytes(bytes(2 * MB))
    free[0] -= lost
    moments[0] += LONGEST_S / 2
    assert (watched.look() or [None])[0] == told
    moments[0] += LONGEST_S
    assert (watched.look() is not None) is (told is not None or bytes_left < 2 * MB), "in the end all is looked at"


@pytest.mark.parametrize(
    ("what", "amount", "words"),
    [
        ("bytes", 300 * MB, "wrote 300 MB, more than the 256 MB it may (4 times ACROUTER_SANDBOX_DISK_MB)"),
        ("files", 1_000_001, "wrote 1,000,001 files, more than the 1,000,000 it may"),
        ("free", 5 * MB, "has 5 MB left, and 1024 MB are to stay free"),
        ("hidden", 0, "cannot be looked into"),
    ],
)
def test_people_are_told_what_was_too_much(what: str, amount: int, words: str) -> None:
    assert words in str(setup_error(DiskExceeded(what, amount), Limits(disk_mb=64)))

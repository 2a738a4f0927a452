"""`acrouter bench long` in its short form: two tasks, through an acrouter that is a program of its own."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from bench.errors import BenchError
from bench.long import figures, installed, measure, table
from tests.support.bugs import DOWNLOADS, MakeBug, make_bug

__all__ = ["make_bug"]

BUG = "xmltodict-none-attribute"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "downloads").symlink_to(DOWNLOADS)
    DOWNLOADS.mkdir(parents=True, exist_ok=True)
    return tmp_path


@pytest.mark.docker
@pytest.mark.timeout(300)
def test_what_it_takes_is_seen_after_each_task(folder: Path) -> None:
    said = io.StringIO()
    samples = measure(Console(file=said, width=160), folder, [BUG], count=2)
    assert "Sandbox: docker." in said.getvalue()
    first, second = samples
    for sample in samples:
        assert sample.use.resident_kb > 100_000
        assert min(sample.use.descriptors, sample.use.threads) > 1
        assert min(sample.database_bytes, sample.data_bytes, sample.log_bytes) > 0
        assert sample.seconds > 0
    assert second.log_bytes > first.log_bytes
    assert figures(samples)["long.left_containers"] == 0
    log = (folder / "long.log").read_text(encoding="utf-8")
    assert log.count("state=published") == log.count("state=closed") == 2
    Console(file=said, width=160).print(table(samples))
    assert "containers left" in said.getvalue()


@pytest.mark.docker
def test_an_acrouter_that_ends_is_told_with_its_last_words(folder: Path, make_bug: MakeBug) -> None:
    def end_early() -> None:
        with installed(folder, [make_bug(BUG)], lambda _: None) as installation:
            installation.process.kill()
            installation.play(make_bug(BUG))

    with pytest.raises(BenchError) as caught:
        end_early()
    ended, place, *log = str(caught.value).splitlines()
    assert (ended, place) == ("acrouter ended with -9.", f"{folder / 'long.log'} ends with:")
    assert "backend=docker" in log[0]

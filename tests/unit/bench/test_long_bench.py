"""What `acrouter bench long` makes of what it sees."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from bench.long import Sample, figures, growth, last_words, size_of, table
from bench.processes import Use

BEGUN = Sample(Use(100 * 1024, 20, 9), 1024, 2048, 0, 512, 0, 8.0)


def grown(tasks: int) -> list[Sample]:
    """Ten more kB of memory, a kB of the database and half a kB of the log with each task."""
    return [
        replace(
            BEGUN,
            use=replace(BEGUN.use, resident_kb=BEGUN.use.resident_kb + 10 * number),
            database_bytes=1024 * (number + 1),
            log_bytes=512 * (number + 1),
        )
        for number in range(tasks)
    ]


@pytest.mark.parametrize(
    ("values", "slope"),
    [
        ([5, 5, 5, 5], 0.0),
        ([0, 100, 100, 101, 102], 1.0),  # what came at the beginning does not count
        ([0, 90, 2, 4, 3, 5], 0.8),
        ([1, 3], 2.0),
        ([7], 0.0),
    ],
)
def test_growth_is_the_slope_of_the_second_half(values: list[float], slope: float) -> None:
    assert growth(values) == pytest.approx(slope)


def test_figures_tell_the_end_and_what_a_task_adds() -> None:
    assert figures(grown(10)) == pytest.approx(
        {
            "long.rss_mb": 100 + 90 / 1024,
            "long.rss_growth_kb_per_task": 10,
            "long.fds": 20,
            "long.threads": 9,
            "long.database_kb_per_task": 1,
            "long.log_kb_per_task": 0.5,
            "long.left_containers": 0,
        }
    )


def test_a_container_that_was_left_after_any_task_is_told() -> None:
    first, *others = grown(4)
    assert figures([replace(first, containers=2), *others])["long.left_containers"] == 2


@pytest.mark.parametrize(("tasks", "moments"), [(100, [1, 25, 50, 100]), (3, [1, 3]), (2, [1, 2])])
def test_the_table_has_the_beginning_a_quarter_half_and_the_end(tasks: int, moments: list[int]) -> None:
    shown = table(grown(tasks))
    assert [column.header for column in shown.columns] == ["", *(f"after {n}" for n in moments), "growth a task"]
    said = io.StringIO()
    Console(file=said, width=160).print(shown)
    [database] = [line for line in said.getvalue().splitlines() if "database" in line]
    assert database.split("│")[-3].strip() == f"{tasks:,.1f}"
    assert "+1.000" in database


def test_a_folder_is_as_large_as_its_files_and_links_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "file").write_bytes(b"12345")
    (tmp_path / "file").write_bytes(b"123")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert size_of(tmp_path) == 8
    assert size_of(tmp_path / "file") == 3
    assert size_of(tmp_path / "nowhere") == 0


def test_the_last_lines_of_a_log_are_told_with_its_place(tmp_path: Path) -> None:
    log = tmp_path / "long.log"
    assert last_words(log) == f"{log} ends with:"
    log.write_text("\n".join(f"line {number}" for number in range(100)))
    place, *lines = last_words(log).splitlines()
    assert place == f"{log} ends with:"
    assert (lines[0], lines[-1], len(lines)) == ("line 80", "line 99", 20)

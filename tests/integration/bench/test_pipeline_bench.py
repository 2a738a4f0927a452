"""`acrouter bench pipeline` in its short form: one task, through everything that a label starts."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from bench.pipeline import STAGES, measure, table
from tests.support.bugs import DOWNLOADS


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "downloads").symlink_to(DOWNLOADS)
    DOWNLOADS.mkdir(parents=True, exist_ok=True)
    return tmp_path


@pytest.mark.docker
@pytest.mark.timeout(300)
def test_one_task_is_measured_stage_by_stage(folder: Path) -> None:
    said = io.StringIO()
    [task] = measure(Console(file=said, width=120), folder, tasks=1)
    assert set(task.own_s) == {"receive", *STAGES.values()}
    assert all(seconds >= 0 for seconds in task.own_s.values())
    assert task.excluded_s > 0
    assert task.overhead_s == pytest.approx(sum(task.own_s.values()))
    assert "Sandbox: docker." in said.getvalue()
    shown = Console(file=said, width=120)
    shown.print(table([task]))
    assert "verify" in said.getvalue()

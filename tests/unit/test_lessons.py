"""Each row of "What went wrong elsewhere" in docs/reliability.md names a test that is there."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROWS = 32
"""Lines of the table; a row may go only with the reason for it."""


def rows() -> list[list[str]]:
    text = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8").split("## What went wrong elsewhere")[1]
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return lines[1:]


def test_every_row_has_a_named_test_and_each_is_there() -> None:
    found = rows()
    assert len(found) == ROWS
    for seen_in, _symptom, _acrouter, tests in found:
        named = re.findall(r"`(tests/[^`]+)::(test_[^`]+)`", tests)
        assert named, f"{seen_in} names no test"
        for path, name in named:
            tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
            there = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
            assert name in there, f"{seen_in}: {path} has no {name}"

"""Each call of a whole run fails once with each fault, and the run still ends once, with words on the target.

`scripts/fault_table.py` runs them all and writes the endings into docs/reliability.md.
"""

import re
from pathlib import Path

import pytest

from tests.support.fault_runs import TABLES, FaultRuns, Table

pytestmark = pytest.mark.timeout(600)
WORST = "time-out after the work"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "reliability.md"


def faults_for(table: Table, number: int, method: str) -> set[str]:
    """Which faults a call meets here; the whole tables are the script's.

    In the first table each call meets a third of them, and each write its worst two. The others repeat most of its
    calls: there each write meets the worst one, and every fifth read and every second request of git's one in turn.
    """
    turn = table.faults[number % len(table.faults)]
    if table is TABLES[0]:
        third = {fault for place, fault in enumerate(table.faults) if place % 3 == number % 3}
        return third if method == "GET" else {*third, "404", WORST}
    if table.over_git:
        return {turn} if number % 2 == 0 else set()
    if method != "GET":
        return {WORST}
    return {turn} if number % 5 == 0 else set()


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.title)
def test_whatever_call_fails_the_run_ends_once_with_words_on_the_target(tmp_path: Path, table: Table) -> None:
    with FaultRuns(tmp_path, table) as runs:
        whole = runs.whole
        assert whole.faults() == []
        assert (whole.summary(), whole.pulls + whole.commits) == ("closed", 1)
        assert (whole.status_comments, whole.check_runs) == (1, 1)
        holes = {
            f"{number + 1}. {call}, {fault}": faults
            for number, call in enumerate(whole.calls)
            for fault in sorted(faults_for(table, number, call.method))
            if (faults := runs.run(fault, number).faults())
        }
    assert holes == {}
    calls = [f"{number + 1}. `{call}`" for number, call in enumerate(whole.calls)]
    assert [row[0] for row in rows_in_the_docs(table)] == calls, "run scripts/fault_table.py"


def test_the_tables_in_the_docs_have_every_fault_and_no_hole() -> None:
    for table in TABLES:
        rows = rows_in_the_docs(table)
        assert rows
        assert all(len(row) == 1 + len(table.faults) and all(row) for row in rows)
    assert "HOLE" not in PAGE.read_text(encoding="utf-8")


def rows_in_the_docs(table: Table) -> list[list[str]]:
    _, found, rest = PAGE.read_text(encoding="utf-8").partition(f"**{table.title}**\n")
    assert found, f"run scripts/fault_table.py: there is no table of {table.title}"
    lines = rest.partition("\n\n**")[0].splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if re.match(r"\| (call|\d+\.) ?", line)]
    assert rows[0] == ["call", *table.faults]
    return rows[1:]

"""Each call of a whole run fails once with each fault, and the run still ends once, with words on the target.

`scripts/fault_table.py` runs them all and writes the endings into docs/reliability.md.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.whole_run import KINDS, Kind, WholeRun

pytestmark = pytest.mark.timeout(600)
PAGE = Path(__file__).resolve().parents[2] / "docs" / "reliability.md"


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[WholeRun]:
    made = WholeRun(tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_call_fails_the_run_ends_once_with_words_on_the_target(runs: WholeRun, kind: Kind) -> None:
    runs.run()  # makes what is made once a repository
    whole = runs.run()
    assert (whole.summary(), whole.pulls, whole.status_comments, whole.check_runs) == ("closed", 1, 1, 1)
    # The whole table is the script's. Here each call meets a fifth of the faults, and each write the worst one.
    turn = KINDS.index(kind) % 5
    chosen = [
        number
        for number, call in enumerate(whole.calls)
        if number % 5 == turn or (call.method != "GET" and kind == "time-out after the work")
    ]
    holes = {
        f"{number + 1}. {whole.calls[number]}": faults
        for number in chosen
        if (faults := runs.run(kind, number).faults())
    }
    assert holes == {}


def test_the_table_in_the_docs_has_every_call_and_every_fault_and_no_hole(runs: WholeRun) -> None:
    runs.run()
    calls = [f"{number + 1}. `{call}`" for number, call in enumerate(runs.run().calls)]
    text = PAGE.read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if re.match(r"\| (call|\d+\.) ?", line)]
    assert rows[0] == ["call", *KINDS]
    assert [row[0] for row in rows[1:]] == calls, "run scripts/fault_table.py"
    assert all(len(row) == 1 + len(KINDS) and all(row) for row in rows)
    assert "HOLE" not in text

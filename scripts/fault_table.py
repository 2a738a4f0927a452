"""Writes the tables of calls x faults into docs/reliability.md: each call of a whole run fails once with each fault.

python scripts/fault_table.py            run them all and rewrite the tables (some minutes)

The runs are those of tests/integration/test_fault_table.py.
"""

import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import structlog

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.fault_runs import TABLES, FaultRuns, Table  # noqa: E402
from tests.support.faulty_wire import Call  # noqa: E402

PAGE = ROOT / "docs" / "reliability.md"
BEGIN = "<!-- faults:begin (scripts/fault_table.py) -->"
END = "<!-- faults:end -->"


def main() -> int:
    with ProcessPoolExecutor(2) as pool:
        running = {
            (table.title, fault): pool.submit(column, number, fault)
            for number, table in enumerate(TABLES)
            for fault in table.faults
        }
        columns = {name: future.result() for name, future in running.items()}
    tables = "\n\n".join(written(table, [columns[table.title, fault] for fault in table.faults]) for table in TABLES)
    head, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    PAGE.write_text(f"{head}{BEGIN}\n{tables}\n{END}{rest.split(END)[1]}", encoding="utf-8")
    cells = [cell for cells in columns.values() for _, cell in cells]
    holes = [cell for cell in cells if cell.startswith("HOLE")]
    print(f"{len(cells)} runs, {len(holes)} holes")
    return 1 if holes else 0


def column(table: int, fault: str) -> list[tuple[Call, str]]:
    """Return for each call of a whole run how the run ends when that call fails once."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    with tempfile.TemporaryDirectory() as folder, FaultRuns(Path(folder), TABLES[table]) as runs:
        found = []
        for number, call in enumerate(runs.whole.calls):
            ending = runs.run(fault, number)
            faults = ending.faults()
            found.append((call, f"HOLE: {'; '.join(faults)}" if faults else ending.summary()))
        return found


def written(table: Table, columns: Sequence[list[tuple[Call, str]]]) -> str:
    rows = [f"**{table.title}**", "", f"| call | {' | '.join(table.faults)} |", "|---|" + "---|" * len(columns)]
    for number, (call, _) in enumerate(columns[0]):
        cells = [cells[number][1] for cells in columns]
        rows.append(f"| {number + 1}. `{call}` | {' | '.join(cells)} |")
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main())

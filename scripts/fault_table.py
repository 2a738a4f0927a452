"""Writes the table of calls x faults into docs/reliability.md: each call of a whole run fails once with each fault.

python scripts/fault_table.py            run them all and rewrite the table (a minute or two)

The runs are those of tests/integration/test_fault_table.py.
"""

import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import structlog

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.whole_run import KINDS, Call, Kind, WholeRun  # noqa: E402

PAGE = ROOT / "docs" / "reliability.md"
BEGIN = "<!-- faults:begin (scripts/fault_table.py) -->"
END = "<!-- faults:end -->"


def main() -> int:
    with ProcessPoolExecutor(2) as pool:
        columns = dict(zip(KINDS, pool.map(column, KINDS), strict=True))
    text = PAGE.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN)
    PAGE.write_text(f"{head}{BEGIN}\n{table(columns)}\n{END}{rest.split(END)[1]}", encoding="utf-8")
    holes = [cell for cells in columns.values() for _, cell in cells if cell.startswith("HOLE")]
    print(f"{len(KINDS)} faults, {len(columns[KINDS[0]])} calls, {len(holes)} holes")
    return 1 if holes else 0


def column(kind: Kind) -> list[tuple[Call, str]]:
    """Return for each call of a whole run how the run ends when that call fails once."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    with tempfile.TemporaryDirectory() as folder:
        runs = WholeRun(Path(folder))
        try:
            runs.run()  # makes what is made once a repository
            calls = runs.run().calls
            found = []
            for number, call in enumerate(calls):
                ending = runs.run(kind, number)
                faults = ending.faults()
                found.append((call, f"HOLE: {'; '.join(faults)}" if faults else ending.summary()))
            return found
        finally:
            runs.close()


def table(columns: dict[Kind, list[tuple[Call, str]]]) -> str:
    rows = [f"| call | {' | '.join(columns)} |", "|---|" + "---|" * len(columns)]
    for number, (call, _) in enumerate(next(iter(columns.values()))):
        cells = [cells[number][1] for cells in columns.values()]
        rows.append(f"| {number + 1}. `{call}` | {' | '.join(cells)} |")
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main())

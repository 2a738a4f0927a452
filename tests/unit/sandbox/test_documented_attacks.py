"""The attacks that docs/sandbox.md names are tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_every_attack_in_the_table_is_a_test() -> None:
    rows = re.findall(r"^\| .* \| `(test_\w+)` \|", (ROOT / "docs" / "sandbox.md").read_text(encoding="utf-8"), re.M)
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("sandbox/test_*.py"))
    defined = set(re.findall(r"def (test_\w+)\(", sources))
    assert len(rows) > 20
    assert set(rows) <= defined
    assert len(rows) == len(set(rows))

"""What people read names only pages that are there."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_every_page_that_a_text_for_people_names_is_there() -> None:
    for path in (ROOT / "templates").rglob("*.*"):
        if path.parent.name != "prompts" and path.suffix != ".pyc":
            for name in re.findall(r"docs/[\w./-]*\w", path.read_text(encoding="utf-8")):
                assert (ROOT / name).exists(), f"{path.name}: {name}"

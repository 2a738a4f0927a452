"""Writes the table of settings into docs/setup.md from the settings' own docstrings.

python scripts/settings_table.py            rewrite the table
python scripts/settings_table.py --check    fail when it is out of date
"""

import ast
import inspect
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from store.settings import PREFIX, Settings  # noqa: E402

PAGE = ROOT / "docs" / "setup.md"
BEGIN = "<!-- settings:begin (scripts/settings_table.py) -->"
END = "<!-- settings:end -->"


def main() -> int:
    text = PAGE.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN)
    tail = rest.split(END)[1]
    wanted = f"{head}{BEGIN}\n{_table()}\n{END}{tail}"
    if "--check" in sys.argv:
        return 0 if wanted == text else 1
    PAGE.write_text(wanted, encoding="utf-8")
    return 0


def _table() -> str:
    words = _docstrings()
    rows = ["| setting | default | what |", "|---|---|---|"]
    for name, field in Settings.model_fields.items():
        default = "" if field.default is None else str(getattr(field.default, "value", field.default))
        rows.append(f"| `{PREFIX}{name.upper()}` | {f'`{default}`' if default else ''} | {words.get(name, '')} |")
    return "\n".join(rows)


def _docstrings() -> dict[str, str]:
    """The string that follows a field's line, as one line."""
    body = ast.parse(textwrap.dedent(inspect.getsource(Settings))).body[0]
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    for line, following in zip(body.body, body.body[1:], strict=False):
        if (
            isinstance(line, ast.AnnAssign)
            and isinstance(line.target, ast.Name)
            and isinstance(following, ast.Expr)
            and isinstance(following.value, ast.Constant)
        ):
            found[line.target.id] = " ".join(str(following.value.value).split())
    return found


if __name__ == "__main__":
    sys.exit(main())

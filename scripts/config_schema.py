"""Writes the JSON Schema of `.acrouter.yml` into docs/ from the model that reads it.

python scripts/config_schema.py            rewrite docs/acrouter.schema.json
python scripts/config_schema.py --check    fail when it is out of date
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from store.repo_schema import repository_config_schema  # noqa: E402

PAGE = ROOT / "docs" / "acrouter.schema.json"


def main() -> int:
    wanted = json.dumps(repository_config_schema(), indent=2) + "\n"
    if "--check" in sys.argv:
        return 0 if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == wanted else 1
    PAGE.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

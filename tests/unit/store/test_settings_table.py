"""The documentation's table of settings is what the settings say."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_the_table_in_the_docs_is_level_with_the_settings() -> None:
    command = [sys.executable, "scripts/settings_table.py", "--check"]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == 0, "run python scripts/settings_table.py"

"""The example of docs/routing.md runs as it stands."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_example_of_the_documentation_runs() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/routing.md").read_text(encoding="utf-8"), re.DOTALL)
    done = subprocess.run([sys.executable, "-c", example], cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("large 1.0 ")

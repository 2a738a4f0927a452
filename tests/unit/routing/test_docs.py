"""The examples of docs/routing.md run as they stand, one after the other."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_examples_of_the_documentation_run(tmp_path: Path) -> None:
    examples = re.findall(r"```python\n(.*?)```", (ROOT / "docs/routing.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(examples) == 2
    seen = "\nprint([(n.key, n.score, n.final) for n in router.decide(router.task('next', job.text)).neighbours])"
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(examples) + seen],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("large 1.0 ")
    assert "('job-17:large', 0.0, True)" in done.stdout

"""Code in a task's text."""

import time
from pathlib import Path

from sandbox.testing.examples import extract, run_examples
from tests.support.local_sandbox import LocalSandbox

ISSUE = """Hello,

```python
>>> from calc import double
>>> double(2)
4
```

This has no expectation:

```pycon
>>> import calc
```

```python
from calc import double

assert double(3) == 6
```

```bash
>>> not python
x
```

    >>> double(1)  # bare, and without its import
    2

> quoted
"""


def test_examples_are_found_in_order_with_what_they_expect() -> None:
    assert [(e.kind, e.code.splitlines()[-1].strip()) for e in extract(ISSUE)] == [
        ("doctest", "4"),
        ("assert", "assert double(3) == 6"),
        ("doctest", "2"),
    ]


def test_each_runs_by_itself_against_the_tree(tmp_path: Path) -> None:
    box = LocalSandbox(tmp_path / "box")
    (box.workspace / "calc.py").write_text("def double(x):\n    return 2 * x\n")
    results = run_examples(box, extract(ISSUE), timeout_s=20)
    assert list(results.values()) == [True, True, False]
    (box.workspace / "calc.py").write_text("def double(x):\n    return 3 * x\n")
    assert list(run_examples(box, extract(ISSUE), timeout_s=20).values()) == [False, False, False]


def test_a_text_made_to_be_slow_is_not() -> None:
    started = time.monotonic()
    for text in (">>> x\n" * 20_000, "```\n" * 20_000, ">>> " + "a" * 100_000, "> " * 20_000, "`" * 50_000):
        assert len(extract(text)) <= 10
    assert time.monotonic() - started < 30

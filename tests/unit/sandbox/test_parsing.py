"""Changed files that the sandbox's own tools cannot parse."""

from pathlib import Path

import pytest

from sandbox.parsing import unparsable
from sandbox.patch_text import read
from sandbox.results import RunnerName
from tests.support.local_sandbox import LocalSandbox
from tests.support.patches import change


def bad_files(root: Path, files: dict[str, str], runner: RunnerName | None) -> list[str]:
    sandbox = LocalSandbox(root)
    for path, content in files.items():
        sandbox.put_file(path, content.encode())
    found = unparsable(sandbox, read("".join(change(path) for path in files)), runner)
    assert found is not None
    return list(found)


def test_each_language_is_read_by_its_own_parser(tmp_path: Path) -> None:
    good = {
        "a.py": "x = 1\n",
        "b.sh": "echo $(date)\n",
        "package.json": "{}",
        "c.toml": "x = 1\n",
        "d.mjs": "import fs from 'fs';\n",
        "e.js": "export const x = 1;\n",  # a module, though nothing says so
        "f.js": "const fs = require('fs');\n",
        "g.go": "package g\n",
        "tsconfig.json": "{ // a comment\n}",
    }
    assert bad_files(tmp_path / "good", good, "node") == []
    bad = {"a.py": "def (", "b.sh": "if true\n", "package.json": "{,}", "c.toml": "x = ", "e.js": "const = 1;\n"}
    assert sorted(bad_files(tmp_path / "bad", bad, "node")) == sorted(bad)


def test_javascript_that_something_else_compiles_is_left_to_the_tests(tmp_path: Path) -> None:
    assert bad_files(tmp_path, {"page.js": "export default () => <p>Hello</p>;\n"}, "jest") == []


def test_the_data_of_tests_may_be_broken_on_purpose(tmp_path: Path) -> None:
    files = {"tests/data/bad.py": "def (", "tests/data/bad.toml": "x =", "tests/test_bad.py": "def ("}
    assert bad_files(tmp_path, files, None) == ["tests/test_bad.py"]


@pytest.mark.parametrize("name", ["-c.py", "$(id).py", "a b.sh", "ü.py"])
def test_names_are_data(tmp_path: Path, name: str) -> None:
    assert bad_files(tmp_path, {name: "if ("}, None) == [name]

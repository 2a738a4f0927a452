"""Test modules that change while the tests run."""

import tarfile
from pathlib import Path

from sandbox.testing.integrity import digests, rewritten
from tests.support.local_sandbox import LocalSandbox


def test_what_was_written_over_or_deleted_is_named(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for name in ("tests/test_a.py", "tests/test_b '$(id).py", "tests/conftest.py", "tests/data.json", "src/a.py"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("x = 1\n", encoding="utf-8")
    archive = tmp_path / "tree.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(tree, arcname=".")
    sandbox = LocalSandbox(tmp_path / "box")
    sandbox.put_tree(archive)
    expected = digests(archive)
    assert sorted(expected) == ["tests/conftest.py", "tests/test_a.py", "tests/test_b '$(id).py"]
    assert rewritten(sandbox, expected) == []

    sandbox.execute("echo x > tests/test_a.py; rm tests/conftest.py; echo x > tests/data.json", timeout_s=10)
    assert rewritten(sandbox, expected) == ["tests/conftest.py", "tests/test_a.py"]
    sandbox.execute('rm tests/test_b*; ln -s /nonexistent "tests/test b\'\\$(id).py"', timeout_s=10)
    assert len(rewritten(sandbox, expected)) == 3

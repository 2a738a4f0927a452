"""What is remembered of test modules, to see whether they change while the tests run."""

import hashlib
import tarfile
from pathlib import Path

from sandbox.testing.integrity import digests
from sandbox.types import FileDigest


def test_test_modules_and_conftests_are_remembered(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for name in ("tests/test_a.py", "tests/test_b '$(id).py", "tests/conftest.py", "tests/data.json", "src/a.py"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(f"{name}\n", encoding="utf-8")
    (tree / "tests/test_link.py").symlink_to("test_a.py")
    archive = tmp_path / "tree.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(tree, arcname=".")
    found = digests(archive)
    assert sorted(found) == ["tests/conftest.py", "tests/test_a.py", "tests/test_b '$(id).py"]
    assert found["tests/test_a.py"] == FileDigest(16, hashlib.sha256(b"tests/test_a.py\n").hexdigest())

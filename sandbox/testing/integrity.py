"""Whether a run of the tests rewrote tests: what then passes is not what was to be run."""

import hashlib
import tarfile
from collections.abc import Mapping
from pathlib import Path

from sandbox.testing.paths import is_test_module
from sandbox.types import FileDigest

_MOST_FILES = 5_000


def digests(archive: Path) -> Mapping[str, FileDigest]:
    """Return what each test module, and each conftest.py, of the tree in a tar holds, for `Sandbox.changed`."""
    found = {}
    with tarfile.open(archive, "r:") as tar:
        for member in tar:
            name = member.name.removeprefix("./")
            of_tests = is_test_module(name) or name.rsplit("/", 1)[-1] == "conftest.py"
            if of_tests and member.isfile() and (stream := tar.extractfile(member)):
                found[name] = FileDigest(member.size, hashlib.sha256(stream.read()).hexdigest())
            if len(found) == _MOST_FILES:
                break
    return found

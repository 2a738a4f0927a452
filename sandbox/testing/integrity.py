"""Whether a run of the tests rewrote tests: what then passes is not what was to be run."""

import hashlib
import shlex
import tarfile
from collections.abc import Mapping
from pathlib import Path

from sandbox.testing.paths import is_test_module
from sandbox.types import Sandbox

_TIMEOUT_S = 30.0
_MOST_FILES = 5_000
_ENDS = (": FAILED", ": FAILED open or read")


def digests(archive: Path) -> Mapping[str, str]:
    """Return the SHA-256 of each test module, and each conftest.py, of the tree in a tar."""
    found = {}
    with tarfile.open(archive, "r:") as tar:
        for member in tar:
            name = member.name.removeprefix("./")
            of_tests = is_test_module(name) or name.rsplit("/", 1)[-1] == "conftest.py"
            # sha256sum(1) writes names with these in another way.
            if of_tests and member.isfile() and not set("\\\n\r") & set(name) and (stream := tar.extractfile(member)):
                found[name] = hashlib.sha256(stream.read()).hexdigest()
            if len(found) == _MOST_FILES:
                break
    return found


def rewritten(sandbox: Sandbox, expected: Mapping[str, str]) -> list[str]:
    """Return the files that are not any more what `digests` said of them. Files that nobody can read count.

    Raises:
        SandboxError: the sandbox is gone.
    """
    if not expected:
        return []
    lines = " ".join(shlex.quote(f"{digest}  ./{name}") for name, digest in expected.items())
    result = sandbox.execute(
        f"export LC_ALL=C; printf '%s\\n' {lines} | sha256sum --check --quiet -", timeout_s=_TIMEOUT_S, trusted=True
    )
    if result.timed_out:  # a file that never ends
        return sorted(expected)
    named = {line.removesuffix(end)[2:] for line in result.output.splitlines() for end in _ENDS if line.endswith(end)}
    return sorted(named & set(expected))

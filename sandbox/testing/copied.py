"""All that a run printed: of a command's output only the beginning and the end are kept, and large suites print more.

So it is copied to a file in the sandbox, and read from there.
"""

from dataclasses import replace

from sandbox.types import CommandResult, Sandbox

MOST = 30_000_000
"""Bytes."""


def copying(command: str, path: str) -> str:
    """Return a line that runs a command, exit code and all, and copies what it prints to a file."""
    return f"set -o pipefail\n{{ {command}\n}} 2>&1 | tee {path}"


def copying_stdout(command: str, path: str) -> str:
    """Return a line for one plain command whose standard output alone has its results."""
    return f"set -o pipefail\n{command} | tee {path}"


def whole(sandbox: Sandbox, result: CommandResult, path: str) -> CommandResult:
    """Return a result with all of its output; it is `truncated` where that is more than can be read."""
    copy = sandbox.read_file(path, limit=MOST)
    if copy is None:
        return result
    return replace(result, output=copy.decode("utf-8", "replace"), truncated=len(copy) == MOST)

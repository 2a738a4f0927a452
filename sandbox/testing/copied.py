"""All that a run printed: of a command's output only the beginning and the end are kept, and large suites print more.

So it is copied to a file in the sandbox, and read from there.
"""

from dataclasses import replace

from sandbox.types import CommandResult, Sandbox

MOST = 30_000_000
"""Bytes."""
# A pipe would wait for whatever the command leaves running, which ends with it; what it printed is copied at once.
_COPY = """exec 3> >(exec tee {path})
copier=$!
(
{command}
) >&3{also} 3>&-
code=$?
exec 3>&-
for _ in {{1..100}}; do kill -0 "$copier" 2>/dev/null || break; sleep 0.02; done
exit "$code\""""


def copying(command: str, path: str) -> str:
    """Return lines that run a command, exit code and all, and copy what it prints to a file."""
    return _COPY.format(command=command, path=path, also=" 2>&1")


def copying_stdout(command: str, path: str) -> str:
    """Return lines that run a command, exit code and all, and copy what it prints on standard output to a file."""
    return _COPY.format(command=command, path=path, also="")


def whole(sandbox: Sandbox, result: CommandResult, path: str) -> CommandResult:
    """Return a result with all of its output; it is `truncated` where that is more than can be read."""
    copy = sandbox.read_file(path, limit=MOST)
    if copy is None:
        return result
    return replace(result, output=copy.decode("utf-8", "replace"), truncated=len(copy) == MOST)

"""Asks the sandbox's own tools which changed files they cannot parse: they are the ones that would read them.

No parser of ours sees a stranger's file on the host. Python, TOML and package.json are read by the sandbox's Python;
Go, Ruby, PHP and shell by their own programs where the image has them; JavaScript by node only where node itself runs
the tests, because elsewhere the same ending may hold JSX. Files of other languages, and those whose program is missing,
are left to the tests, and so is the data of tests: it may be broken on purpose.
"""

import base64
import json
from collections.abc import Sequence
from pathlib import PurePosixPath

from sandbox.patch_text import FileChange
from sandbox.results import RunnerName
from sandbox.testing.paths import is_test_module, is_test_path
from sandbox.types import Sandbox

_TIMEOUT_S = 30.0
_PYTHON, _SHELL = (".py", ".pyi"), (".sh", ".bash")
_JAVASCRIPT = (".js", ".mjs", ".cjs")
# Run inside the sandbox: [[path, kind], ...] -> the files that cannot be parsed.
_SCRIPT = """
import ast, json, os, shutil, subprocess, sys, tempfile
TOOLS = {"go": ["gofmt", "-e", "-l"], "ruby": ["ruby", "-c"], "php": ["php", "-l"], "shell": ["bash", "-n"],
         "node": ["node", "--check"]}
def runs(command):
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
    return subprocess.call(command, timeout=20, **quiet) == 0
def parses(path, kind):
    with open(path, "rb") as file:
        content = file.read()
    if kind == "python":
        ast.parse(content)
    elif kind == "json":
        json.loads(content)
    elif kind == "toml":
        import tomllib
        tomllib.loads(content.decode())
    elif shutil.which(TOOLS[kind][0]) and not runs([*TOOLS[kind], os.path.abspath(path)]):
        if kind != "node" or not path.endswith(".js"):
            return False
        with tempfile.TemporaryDirectory() as folder:  # a module, in a package that does not say so
            module = os.path.join(folder, "module.mjs")
            with open(module, "wb") as file:
                file.write(content)
            return runs([*TOOLS[kind], module])
    return True
bad = []
for path, kind in json.loads(sys.argv[1]):
    try:
        if not parses(path, kind):
            bad.append(path)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        bad.append(path)
    except (ImportError, OSError, subprocess.SubprocessError):
        pass
print("PARSED" + json.dumps(bad))
"""


def unparsable(sandbox: Sandbox, changes: Sequence[FileChange], runner: RunnerName | None) -> Sequence[str] | None:
    """Return the changed files that cannot be parsed; None where there was nobody to ask.

    Raises:
        SandboxError: the sandbox is gone.
    """
    wanted = [
        (change.path, kind)
        for change in changes
        if change.kind != "deleted"
        and not change.binary
        and (is_test_module(change.path) or not is_test_path(change.path))
        and (kind := _kind(change.path, runner))
    ]
    if not wanted:
        return ()
    names = base64.b64encode(json.dumps(wanted).encode()).decode()
    script = base64.b64encode(_SCRIPT.encode()).decode()
    result = sandbox.execute(
        f'python3 -I -c "$(printf %s {script} | base64 -d)" "$(printf %s {names} | base64 -d)"', timeout_s=_TIMEOUT_S
    )
    line = next((line for line in result.output.splitlines() if line.startswith("PARSED")), None)
    if line is None:
        return None
    try:
        return [str(path) for path in json.loads(line.removeprefix("PARSED"))]
    except ValueError:
        return None


def _kind(path: str, runner: RunnerName | None) -> str:
    name = PurePosixPath(path).name
    if name.endswith(_JAVASCRIPT):
        return "node" if runner == "node" else ""
    if name.endswith(_PYTHON):
        return "python"
    if name.endswith(_SHELL):
        return "shell"
    if name in ("package.json", "package-lock.json"):
        return "json"
    return {".toml": "toml", ".go": "go", ".rb": "ruby", ".php": "php"}.get(PurePosixPath(name).suffix, "")

"""Runs a set-up plan in a sandbox that has the network, and keeps what it made.

Dependencies go to /opt/venv, which is what a backend snapshots. The repository itself is best installed editable: the
venv then points at WORKSPACE, and the tree that is put in later is the tree that is tested. What the set-up writes into
WORKSPACE would be lost with it, so the new files there (a version file, a compiled module) are packed beside the venv;
`GuestSandbox.put_tree` adds them to each fresh tree without replacing any of its files. node_modules are too large for
that: they stay beside the venv, each in its place, and what is packed is a link to each.
"""

import json
import time
from pathlib import Path

from sandbox.archives import check_archive
from sandbox.disk_bound import DiskBound, DiskExceeded, setup_bytes, setup_error
from sandbox.errors import ImageError
from sandbox.guest_sandbox import PRODUCTS, VENV, GuestSandbox
from sandbox.host_network import CERTIFICATES, certificate_bundle, setup_environment
from sandbox.types import Limits, SetupPlan

_TAIL = 3000
_KEEP_S = 240
_PRODUCTS_LIMIT = 64 << 20
_MODULES = f"{VENV}/modules"
_NAMES = "/tmp/acrouter-tree.json"  # noqa: S108  (inside the sandbox)
# In a workspace some links lead out of node_modules, to packages of the tree: those are told where the tree stands.
KEEP_MODULES = f"""
import json, os, shutil, subprocess
top, known = os.getcwd(), json.load(open({_NAMES!r}))
shutil.rmtree({_MODULES!r}, ignore_errors=True)
found = []
for folder, folders, _ in os.walk("."):
    if "node_modules" in folders:
        folders.remove("node_modules")
        path = os.path.relpath(os.path.join(folder, "node_modules"))
        if not os.path.islink(path) and not any(name.startswith(path + "/") for name in known):
            found.append(path)
for modules in found:
    for folder, folders, files in os.walk(modules):
        for path in (os.path.join(folder, name) for name in folders + files):
            if os.path.islink(path):
                target = os.path.realpath(path)
                if target.startswith(top + "/") and "/node_modules/" not in target[len(top):] + "/":
                    os.remove(path)
                    os.symlink(target, path)
for modules in found:
    kept = os.path.join({_MODULES!r}, modules)
    os.makedirs(os.path.dirname(kept), exist_ok=True)
    subprocess.run(["mv", "--", modules, kept], check=True)
    os.symlink(kept, modules)
"""
_PACK = f"""
import json, os, sys, tarfile
known = set(json.load(open({_NAMES!r})))
skip = {{"__pycache__", ".git", "build", ".pytest_cache", ".eggs", ".gradle", "node_modules", ".venv", "venv"}}
new, size = [], 0
for folder, folders, files in os.walk("."):
    files = files + [f for f in folders if os.path.islink(os.path.join(folder, f))]
    built = skip | {{"target"}} if "pom.xml" in files else skip
    folders[:] = [f for f in folders if f not in built and not f.endswith((".egg-info", ".dist-info"))]
    for file in files:
        path = os.path.relpath(os.path.join(folder, file))
        if path not in known and (os.path.isfile(path) or os.path.islink(path)):
            new.append(path)
            size += os.lstat(path).st_size
if size > {_PRODUCTS_LIMIT}:
    sys.exit("it wrote %d MB of new files into the tree; at most {_PRODUCTS_LIMIT >> 20} are kept" % (size >> 20))
if new:
    with tarfile.open({PRODUCTS!r}, "w") as tar:
        for path in sorted(new):
            tar.add(path, recursive=False)
"""


def run(
    sandbox: GuestSandbox, archive: Path, plan: SetupPlan, *, timeout_s: float, limits: Limits, root: str = VENV
) -> None:
    """Put the tree in and run the plan's commands as the agent's user, one after another.

    `root` is the folder whose file system is the host's disk.

    Raises:
        ImageError: a command failed, wrote too much or the time was up; the message carries the end of its output.
    """
    try:
        _run(sandbox, archive, plan, timeout_s, DiskBound(root, setup_bytes(limits)))
    except DiskExceeded as error:
        raise setup_error(error, limits) from error


def _run(sandbox: GuestSandbox, archive: Path, plan: SetupPlan, timeout_s: float, bound: DiskBound) -> None:
    deadline = time.monotonic() + timeout_s
    bundle = certificate_bundle()
    environment = setup_environment(certificates=bundle is not None)
    if bundle is not None:
        sandbox.put_file(CERTIFICATES, bundle)
    names = check_archive(archive)
    sandbox.put_tree(archive)
    for command in plan.commands:
        left = max(deadline - time.monotonic(), 1)
        result = sandbox.execute(command, timeout_s=left, environment=environment, bound=bound)
        if result.timed_out:
            raise ImageError(_failure(f"did not end within {timeout_s:.0f} s", plan, command, result.output))
        if result.exit_code:
            raise ImageError(_failure(f"failed with exit code {result.exit_code}", plan, command, result.output))
    sandbox.put_file(_NAMES, json.dumps(names).encode())
    for script in (KEEP_MODULES, _PACK):
        kept = sandbox.execute(f"python3 -I - <<'ACROUTER_END'\n{script}\nACROUTER_END", timeout_s=_KEEP_S, bound=bound)
        if kept.exit_code:
            raise ImageError(f"The set-up ({plan.source}) cannot be kept: {kept.output[-_TAIL:]}")


def _failure(what: str, plan: SetupPlan, command: str, output: str) -> str:
    """One sentence for people, what they can do, and below it what the command printed last."""
    return (
        f"The set-up ({plan.source}) {what}, in: {command}. `setup` in .acrouter.yml says what to run instead.\n"
        f"{output[-_TAIL:]}"
    )

"""Installs the npm packages of `tests/npm` once, by exact version and lock file, into a cache beside the checkout."""

import fcntl
import functools
import hashlib
import shutil
import subprocess
from functools import cache
from pathlib import Path

from tests.support.services import find_program

_HERE = Path(__file__).resolve().parents[1] / "npm"
CACHE = Path(__file__).resolve().parents[2] / ".cache"


def lock_hash() -> str:
    """Return a short hash of the lock file: what is cut from the packages is cached under it."""
    return hashlib.sha256((_HERE / "package-lock.json").read_bytes()).hexdigest()[:16]


@cache
def node_modules() -> Path:
    """Return the folder `node_modules` with every package of the lock file in it.

    Processes that ask at the same time wait for the first one's `npm ci`.

    Raises:
        ServiceMissingError: Node.js or npm is not installed.
        subprocess.CalledProcessError: npm failed; its own words are in the test's output.
    """
    npm = find_program("npm")
    CACHE.mkdir(exist_ok=True)
    folder = CACHE / f"npm-{lock_hash()}"
    with (CACHE / "npm.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / ".complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            for name in ("package.json", "package-lock.json"):
                shutil.copy(_HERE / name, folder / name)
            options = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
            subprocess.run([npm, "ci", *options], cwd=folder, check=True, timeout=600)
            _drop_what_is_not_read(folder)
            (folder / ".complete").touch()
    return folder / "node_modules"


def node() -> str:
    """Return the path of Node.js."""
    return find_program("node")


@functools.cache
def node_command() -> tuple[str, ...]:
    """Return what starts Node.js with the Web Crypto API: an option in the Node 18 of Debian 12."""
    version = subprocess.run([node(), "--version"], check=True, capture_output=True, text=True, timeout=30).stdout
    old = int(version.lstrip("v").partition(".")[0]) < 19
    return (node(), *(["--experimental-global-webcrypto"] if old else []))


def emulate_api() -> Path:
    """Return the module that makes stateful GitHubs."""
    return node_modules() / "emulate" / "dist" / "api.js"


def openapi_description() -> Path:
    """Return GitHub's own description of its REST API (OpenAPI 3.0, JSON)."""
    return node_modules() / "@octokit" / "openapi" / "generated" / "api.github.com.json"


def webhook_description() -> Path:
    """Return GitHub's own description of its webhooks (OpenAPI 3.1, JSON)."""
    return node_modules() / "@octokit" / "openapi-webhooks" / "generated" / "api.github.com.json"


def webhook_schemas() -> Path:
    """Return the older and more lenient JSON Schema of all webhooks."""
    return node_modules() / "@octokit" / "webhooks-schemas" / "schema.json"


def webhook_examples() -> Path:
    """Return the published webhook payloads, by event."""
    return node_modules() / "@octokit" / "webhooks-examples" / "api.github.com" / "index.json"


def _drop_what_is_not_read(folder: Path) -> None:
    """Remove the descriptions of GitHub Enterprise's versions: 400 MB that no test reads."""
    octokit = folder / "node_modules" / "@octokit"
    for package in ("openapi", "openapi-webhooks"):
        for path in (octokit / package / "generated").iterdir():
            if not path.name.startswith("api.github.com."):
                path.unlink()
    for path in (octokit / "webhooks-examples").glob("ghes-*"):
        shutil.rmtree(path)

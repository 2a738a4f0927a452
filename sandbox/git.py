"""Runs git on the host: in bare repositories of ours only, with nobody's configuration, hooks, filters or prompts."""

import base64
import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from sandbox.errors import CheckoutError
from sandbox.remotes import GitRemote

_KEPT = (
    "PATH",
    "TMPDIR",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CURL_CA_BUNDLE",
    *(variant for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy") for variant in (name, name.upper())),
)
_CONFIG = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.attributesFile": "/dev/null",
    "core.excludesFile": "/dev/null",
    "core.protectHFS": "true",
    "core.protectNTFS": "true",
    "core.quotePath": "true",
    "credential.helper": "",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "fetch.recurseSubmodules": "false",
    "merge.renameLimit": "1",
    "submodule.recurse": "false",
    "protocol.ext.allow": "never",
    "transfer.credentialsInUrl": "die",
    "tar.umask": "0022",
    "commit.gpgSign": "false",
    "push.gpgSign": "false",
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "60",
}


# Set before git begins: what it starts, such as the process that writes a pack, would else go without. Python ignores
# the signal of a file that is too large, and whoever is started by it would as well.
_LIMITED = """
import os, resource, signal, sys
most = int(sys.argv[1])
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
try:
    os.execvp(sys.argv[2], sys.argv[2:])
except OSError as error:
    sys.exit(f"git cannot be started: {error.strerror}")
"""

TOO_SLOW = "did not end within"
"""Part of what `GitFailedError` says of a command that passed its time limit."""


class GitFailedError(CheckoutError):
    """git ended with an error; the message is what it said, without secrets."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        """Its exit status; None where it did not end by itself."""


def run_git(
    arguments: Sequence[str],
    *,
    git_dir: Path,
    timeout_s: float,
    stdin: bytes = b"",
    stdout_to: Path | None = None,
    file_limit: int | None = None,
    remote: GitRemote | None = None,
    environment: Mapping[str, str] | None = None,
    allow_local: bool = False,
) -> bytes:
    """Run one git command on the bare repository `git_dir` and return its stdout.

    With `remote`, its token goes to git as an HTTP header, by environment (GIT_CONFIG_COUNT, git-config(1)) and for
    that URL only. `allow_local` lets git read another repository by its path. `file_limit` bounds, in bytes, every file
    that it writes, packs and `stdout_to`: a small tree can name itself again and again and be endless when listed.

    Raises:
        GitFailedError: it failed or passed its time limit.
    """
    config = dict(_CONFIG)
    secrets: list[str] = []
    if remote is not None and remote.token:
        basic = base64.b64encode(f"{remote.username}:{remote.token}".encode()).decode()
        config[f"http.{remote.url}.extraHeader"] = f"Authorization: Basic {basic}"
        secrets = [remote.token, basic]
    env = _environment(git_dir, config, allow_local) | dict(environment or {})
    with contextlib.ExitStack() as stack:
        sink: IO[bytes] | int = subprocess.PIPE if stdout_to is None else stack.enter_context(stdout_to.open("wb"))
        limited = () if file_limit is None else (sys.executable, "-I", "-S", "-c", _LIMITED, str(file_limit))
        try:
            process = subprocess.Popen(
                [*limited, "git", *arguments],
                cwd="/",
                env=env,
                stdin=subprocess.PIPE,
                stdout=sink,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise GitFailedError(f"git cannot be started: {error.strerror}") from error
        try:
            output, errors = process.communicate(stdin, timeout=timeout_s)
        except subprocess.TimeoutExpired:
            raise GitFailedError(f"git {arguments[0]} {TOO_SLOW} {timeout_s:.0f} s") from None
        finally:
            # git's transports are processes of their own: end the whole session, on every way out.
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
    if file_limit is not None and process.returncode == -signal.SIGXFSZ:
        raise GitFailedError(f"git {arguments[0]} gave more than {file_limit >> 20} MB")
    if process.returncode:
        said = ((output or b"") + (errors or b"")).decode("utf-8", "replace")  # push speaks on stdout
        words = scrub(said.strip()[-2000:], secrets) or f"git {arguments[0]} failed"
        raise GitFailedError(words, process.returncode)
    return output or b""


def check_remote(remote: GitRemote, *, allow_local: bool) -> bool:
    """Return whether `remote` is a local path.

    Raises:
        CheckoutError: its URL is neither http(s) nor, where allowed, an absolute local path; or it carries a secret.
    """
    if any(ord(character) < 32 for character in remote.url):
        raise CheckoutError("The repository's URL holds a control character.")
    if allow_local and remote.url.startswith("/"):
        return True
    if " " in remote.url:
        raise CheckoutError("The repository's URL holds a space.")
    url = urlsplit(remote.url)
    if url.scheme in ("http", "https") and url.hostname:
        if "@" in url.netloc:
            raise CheckoutError("The repository's URL must not hold a user or a password; the token goes separately.")
        return False
    raise CheckoutError(f"Repositories are fetched over https or http only, not from {remote.url!r}.")


def scrub(text: str, secrets: Sequence[str]) -> str:
    """Return text without the secrets and without user and password in its URLs."""
    for secret in secrets:
        text = text.replace(secret, "***")
    return re.sub(r"(https?://)[^/@\s]+@", r"\1***@", text)


def _environment(git_dir: Path, config: Mapping[str, str], allow_local: bool) -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    counted = {"GIT_CONFIG_COUNT": str(len(config))}
    for index, (key, value) in enumerate(config.items()):
        counted[f"GIT_CONFIG_KEY_{index}"] = key
        counted[f"GIT_CONFIG_VALUE_{index}"] = value
    return {
        "PATH": os.defpath,
        **kept,
        "GIT_DIR": str(git_dir),
        "HOME": "/nonexistent",
        "XDG_CONFIG_HOME": "/nonexistent",
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "false",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_ALLOW_PROTOCOL": "file" if allow_local else "http:https",
        **counted,
    }

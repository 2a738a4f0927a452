"""The argument list of one bubblewrap sandbox (bwrap(1)): which of the host's files are seen inside, and how."""

import functools
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sandbox.errors import SandboxUnavailable
from sandbox.guest_sandbox import AGENT_UID, HOME, VENV, guest_arguments
from sandbox.types import WORKSPACE, Limits

# Programs and libraries, and the little of /etc that they need. Nothing else of the host is there.
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ETC = (
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/ca-certificates",
    "/etc/pki/tls/certs",
)
_NETWORK_ETC = ("/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/hosts")
_INSTALL = "bubblewrap cannot be used: {reason}. Install it (`apt-get install bubblewrap`)."
_PERMIT = (
    "bubblewrap is installed and cannot be used: {reason} An ordinary user needs unprivileged user namespaces for it "
    "(on Ubuntu: `sysctl kernel.apparmor_restrict_unprivileged_userns=0`); in a container it starts only where that "
    "container is a privileged one."
)


@dataclass(frozen=True)
class BubblewrapPlan:
    limits: Limits
    venv: Path | None
    """The host's folder that stands at /opt/venv; None: there is none yet."""
    etc: Path
    """The host's folder with our own passwd and group."""
    for_setup: bool = False
    """With the network, and the venv writable."""
    agent_uid: int | None = None
    """Who untrusted commands run as where acrouter is root; None: bubblewrap runs as an ordinary user."""


def command(plan: BubblewrapPlan) -> tuple[list[str], list[str]]:
    """Return bubblewrap's options, and the command that starts the sandbox's guest in it."""
    disk = plan.limits.disk_mb << 20
    arguments = ["--die-with-parent", "--new-session", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
    arguments += ["--unshare-cgroup-try", "--hostname", "sandbox", "--clearenv"]
    # The guest is the first process itself: bubblewrap's own would hold the guest's pipes open to the agent, and an
    # agent of the same user could kill a guest that is any other.
    arguments.append("--as-pid-1")
    if not plan.for_setup:
        arguments.append("--unshare-net")
    if plan.agent_uid is None:
        arguments += ["--unshare-user", "--uid", str(AGENT_UID), "--gid", str(AGENT_UID), "--cap-drop", "ALL"]
    else:
        arguments += ["--cap-drop", "ALL"]
        # The guest's own, as in sandbox.docker_container; the agent's user has none of them.
        for capability in ("CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID"):
            arguments += ["--cap-add", f"CAP_{capability}"]
    arguments += ["--dir", "/etc"]
    for path in _SYSTEM:
        if Path(path).is_symlink():
            arguments += ["--symlink", str(Path(path).readlink()), path]
        elif Path(path).exists():
            arguments += ["--ro-bind", path, path]
    etc = [path for path in ((*_ETC, *_NETWORK_ETC) if plan.for_setup else _ETC) if Path(path).exists()]
    arguments += [*_readable_parents(etc), *_read_only(etc)]
    for name in ("passwd", "group"):
        arguments += ["--ro-bind", str(plan.etc / name), f"/etc/{name}"]
    arguments += ["--proc", "/proc", "--dev", "/dev"]
    arguments += _readable_parents([VENV, HOME, *python_folders()])
    # Sizes as in a container: 5/8 of the disk limit for the tree, 2/8 for /tmp, 1/8 for the home.
    for place, share in ((WORKSPACE, 5), ("/tmp", 2), (HOME, 1)):  # noqa: S108
        size = ["--size", str(share * disk // 8)] if can_limit_size() else []
        arguments += [*_mode("1777" if plan.agent_uid is not None else "0755"), *size, "--tmpfs", place]
    arguments += _read_only(python_folders())
    if plan.venv is not None:
        arguments += ["--bind" if plan.for_setup else "--ro-bind", str(plan.venv), VENV]
    arguments += ["--chdir", "/", "--remount-ro", "/"]
    return arguments, [sys_python(), *guest_arguments(plan.limits, uid=plan.agent_uid, rlimits=_rlimits(plan))]


def sys_python() -> str:
    """Return the interpreter that the sandboxes use: the one acrouter's own environment is based on."""
    return str(Path(getattr(sys, "_base_executable", sys.executable)).resolve())


def python_folders() -> list[str]:
    """Return what must be bound so that `sys_python` runs: its own prefix where it is not below /usr.

    Raises:
        SandboxUnavailable: that prefix is somebody's home or the whole root.
    """
    prefix = Path(sys.base_prefix).resolve()
    if prefix == Path("/usr") or Path("/usr") in prefix.parents:
        return []
    if prefix in (Path("/"), Path("/root"), Path("/home"), Path.home()) or prefix.parent == Path("/home"):
        raise SandboxUnavailable(f"Python lives in {prefix}, which cannot be shown to untrusted code as a whole.")
    return [str(prefix)]


@functools.cache
def can_limit_size() -> bool:
    """Return whether this bwrap knows --size (0.7 and newer)."""
    return version() >= (0, 7)


@functools.cache
def version() -> tuple[int, ...]:
    """Return bwrap's version.

    Raises:
        SandboxUnavailable: it is not installed.
    """
    try:
        said = subprocess.run(["bwrap", "--version"], capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise SandboxUnavailable(_INSTALL.format(reason=error)) from error
    return tuple(int(part) for part in re.findall(r"\d+", said))


def unavailable(reason: str) -> SandboxUnavailable:
    """Return the error that says what a bubblewrap which is there needs."""
    return SandboxUnavailable(_PERMIT.format(reason=f"{reason.rstrip('.')}."))


def _rlimits(plan: BubblewrapPlan) -> dict[str, int]:
    limits = {"RLIMIT_AS": plan.limits.memory_mb << 20, "RLIMIT_NPROC": plan.limits.pids}
    if plan.for_setup:
        del limits["RLIMIT_AS"]  # compilers map more than they use
    return limits


def _mode(octal: str) -> list[str]:
    # --perms came with 0.5; older versions make 0755.
    return ["--perms", octal] if version() >= (0, 5) else []


def _readable_parents(paths: Iterable[str]) -> list[str]:
    """Make parent folders that every user may pass; bwrap's own would be the owner's alone."""
    parents = {str(parent): None for path in paths for parent in reversed(Path(path).parents) if parent != Path("/")}
    return [argument for parent in parents for argument in ("--dir", parent)]


def _read_only(paths: Iterable[str]) -> list[str]:
    return [argument for path in paths for argument in ("--ro-bind", os.path.realpath(path), path)]

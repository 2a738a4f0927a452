"""Chooses what isolates on this machine."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from sandbox.bubblewrap_backend import BubblewrapBackend
from sandbox.docker_backend import DockerBackend
from sandbox.errors import SandboxUnavailable
from sandbox.types import Backend, Limits


def choose_backend(
    kind: Literal["auto", "docker", "bubblewrap"],
    *,
    base_image: str,
    data_dir: Path,
    limits: Limits,
    instance: str = "default",
    runtime: str = "",
    packages: Sequence[str] = (),
) -> Backend:
    """Return a backend that works: for `auto` Docker where its daemon answers; else, without `runtime`, bubblewrap.

    Raises:
        SandboxUnavailable: what was asked for, or anything at all, cannot be used; the message says what to install, or
            which setting Docker cannot fulfil.
    """
    reasons = []
    if kind in ("auto", "docker"):
        docker = DockerBackend(
            base_image, limits, instance=instance, runtime=runtime or None, packages=packages, data_dir=data_dir
        )
        try:
            docker.ping()
        except SandboxUnavailable as error:
            reasons.append(str(error))
        else:
            docker.require_settings()  # another sandbox in its place would be a weaker one than was asked for
            return docker
    # A runtime is asked for to isolate more: bubblewrap in its place would isolate less.
    if kind == "bubblewrap" or (kind == "auto" and not runtime):
        bubblewrap = BubblewrapBackend(data_dir, limits)
        try:
            bubblewrap.check()
        except SandboxUnavailable as error:
            reasons.append(str(error))
        else:
            return bubblewrap
    raise SandboxUnavailable("Untrusted code cannot be isolated on this machine.\n" + "\n".join(reasons))

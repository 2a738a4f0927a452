"""A base image with more Debian packages: the compilers and interpreters of other languages."""

import hashlib
import re
from collections.abc import Mapping, Sequence

import docker.utils
from docker import APIClient

from sandbox.errors import ImageError
from sandbox.host_network import setup_environment
from sandbox.images import build
from sandbox.types import Progress

# Debian Policy 5.6.1: nothing in it can be an option or reach a shell.
_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+")
_TIMEOUT_S = 1200


def packaged(api: APIClient, base: str, packages: Sequence[str]) -> str:
    """Return the name of the image that is `base` with these packages; without any it is `base` itself.

    Raises:
        ImageError: a name is none of a package.
    """
    wanted = sorted(set(packages))
    if not wanted:
        return base
    for name in wanted:
        if not _PACKAGE.fullmatch(name):
            raise ImageError(f"{name!r} in ACROUTER_SANDBOX_PACKAGES is not the name of a Debian package.")
    with build.docker_errors("look at the base image"):
        identity = str(api.inspect_image(base)["Id"])  # type: ignore[no-untyped-call]
    tag = "with-" + hashlib.sha256("\0".join([identity, *wanted]).encode()).hexdigest()[:16]
    return f"{docker.utils.parse_repository_tag(base)[0]}:{tag}"


def ensure_packages(
    api: APIClient, base: str, packages: Sequence[str], labels: Mapping[str, str], progress: Progress | None = None
) -> str:
    """Return an image that is `base` with these Debian packages, made with `labels` where it is missing.

    Raises:
        ImageError: a name is none of a package, or apt failed; the message carries the end of what it said.
    """
    image = packaged(api, base, packages)
    if image == base:
        return base
    wanted = sorted(set(packages))
    repository, tag = docker.utils.parse_repository_tag(image)
    if build.is_present(api, image):
        return image
    if progress:
        progress(f"Installing {', '.join(wanted)} into the base image")
    command = (
        # The debootstrap build leaves no logs, and apt wants the folder of its own.
        "mkdir -p /var/log/apt && apt-get update && apt-get install -y --no-install-recommends "
        + " ".join(wanted)
        + " && rm -rf /var/lib/apt/lists/*"
    )
    with build.docker_errors(f"install {', '.join(wanted)}"):
        container = api.create_container(
            base,
            entrypoint=build.NO_ENTRYPOINT,
            command=["sh", "-c", command],
            user="0:0",
            environment={**setup_environment(certificates=False), "DEBIAN_FRONTEND": "noninteractive"},
            host_config=api.create_host_config(init=True, network_mode="bridge"),
        )["Id"]
        try:
            api.start(container)
            ended = api.wait(container, timeout=_TIMEOUT_S)["StatusCode"]
            if ended:
                said = api.logs(container, tail=40).decode("utf-8", "replace")
                raise ImageError(
                    f"The packages {', '.join(wanted)} (ACROUTER_SANDBOX_PACKAGES) cannot be installed:\n{said[-2000:]}"
                )
            api.commit(
                container,
                repository=repository,
                tag=tag,
                changes=build.changes({"acrouter.packages": " ".join(wanted), **labels}),
            )
        finally:
            api.remove_container(container, force=True, v=True)
    return image

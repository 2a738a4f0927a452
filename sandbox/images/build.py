"""Builds the base image: from a registry where one answers, else by debootstrap."""

import hashlib
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import docker
import docker.errors
import docker.utils
import requests
from docker import APIClient

from sandbox.errors import ImageError
from sandbox.host_network import CERTIFICATES, certificate_bundle, setup_environment
from sandbox.types import Progress

_HERE = Path(__file__).resolve().parent
_RECIPE_FILES = ("Dockerfile", "packages.txt", "provision.sh", "requirements.txt")
_DEBIAN = "debian:bookworm-slim"
_SUITE = "bookworm"
_REGISTRY_TIMEOUT_S = 20
_BUILD_TIMEOUT_S = 900
_PROVISION = "sh /opt/provision.sh /opt/requirements.txt"


def recipe() -> str:
    """Return a hash of all that the base image is made from."""
    digest = hashlib.sha256()
    for name in _RECIPE_FILES:
        digest.update((_HERE / name).read_bytes())
    return digest.hexdigest()[:16]


def requirements() -> list[str]:
    """Return what every sandbox's Python environment starts with, as pinned requirements."""
    return (_HERE / "requirements.txt").read_text(encoding="utf-8").split()


def ensure_base(api: APIClient, image: str, progress: Progress | None = None) -> str:
    """Return `image`, making it where it is missing.

    A name with a registry's host in it (`ghcr.io/acme/base:3`) is pulled. Any other name is ours to build and never
    pulled: on Docker Hub it could be anybody's.

    Raises:
        ImageError: it can neither be pulled nor built; the message says what to do.
    """
    say = progress or (lambda _: None)
    if is_present(api, image):
        return image
    if "/" in image and any(mark in image.split("/", maxsplit=1)[0] for mark in ".:"):
        say(f"Pulling {image}")
        pull(api, image, _BUILD_TIMEOUT_S)
        return image
    try:
        say(f"Pulling {_DEBIAN}")
        pull(api, _DEBIAN, _REGISTRY_TIMEOUT_S)
        say(f"Building {image} from sandbox/images/Dockerfile")
        system = _build_system(api)
    except ImageError as error:
        say("No registry answers: building the base image with debootstrap (about a minute)")
        system = _bootstrap_system(api, why=str(error))
    try:
        say("Installing pytest into the base image")
        provision(api, system, image, _PROVISION, {"acrouter.recipe": recipe()})
    finally:
        with docker_errors("remove the intermediate image"):
            api.remove_image(system, force=True)
    return image


def is_present(api: APIClient, image: str) -> bool:
    """Return whether the daemon has an image of this name."""
    with docker_errors(f"look for the image {image}"):
        return bool(api.images(name=image, quiet=True))


def pull(api: APIClient, image: str, timeout_s: int = _BUILD_TIMEOUT_S) -> None:
    """Fetch an image from its registry.

    Raises:
        ImageError: the registry does not have or give it.
    """
    repository, tag = docker.utils.parse_repository_tag(image)
    # A client of its own: the time limit is the connection's.
    puller = docker.from_env(version=api.api_version, timeout=timeout_s).api
    try:
        with docker_errors(f"pull {image}"):
            puller.pull(repository, tag=tag or "latest")
            if not is_present(api, image):
                raise ImageError(f"The registry has no image {image}.")
    finally:
        puller.close()


def _build_system(api: APIClient) -> str:
    tag = f"acrouter/system:{recipe()}"
    log: list[str] = []
    with docker_errors("build the Dockerfile"):
        for line in api.build(
            path=str(_HERE), tag=tag, target="system", rm=True, forcerm=True, decode=True, timeout=_BUILD_TIMEOUT_S
        ):
            log.append(str(line.get("stream", "")))
            if "error" in line:
                raise ImageError(f"The base image cannot be built: {line['error']}\n{''.join(log)[-2000:]}")
    return tag


def _bootstrap_system(api: APIClient, why: str) -> str:
    program = shutil.which("debootstrap") or shutil.which("debootstrap", path="/usr/sbin:/sbin")
    advice = (
        "Either make the base image where a registry can be reached (docker build -t acrouter/base:1 sandbox/images, "
        "then docker save and docker load), or run once as root with debootstrap installed (apt-get install "
        "debootstrap), or set ACROUTER_SANDBOX=bubblewrap."
    )
    if program is None or os.geteuid() != 0:
        lacking = "debootstrap is not installed" if program is None else "debootstrap needs root"
        raise ImageError(f"The base image is missing, no registry answers ({why}), and {lacking}. {advice}")
    tag = f"acrouter/system:{recipe()}"
    packages = ",".join((_HERE / "packages.txt").read_text(encoding="utf-8").split())
    with tempfile.TemporaryDirectory(prefix="acrouter-image-") as folder:
        root = Path(folder) / "root"
        command = [program, "--variant=minbase", f"--include={packages}", _SUITE, str(root)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", timeout=_BUILD_TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise ImageError(f"debootstrap did not end within {_BUILD_TIMEOUT_S} s. {advice}") from error
        if done.returncode:
            raise ImageError(f"debootstrap failed:\n{(done.stdout + done.stderr)[-2000:]}\n{advice}")
        for leftover in ("var/cache/apt", "var/lib/apt/lists", "var/log", "debootstrap"):
            shutil.rmtree(root / leftover, ignore_errors=True)
        archive = Path(folder) / "root.tar"
        subprocess.run(["tar", "-C", str(root), "-cf", str(archive), "."], check=True, capture_output=True)
        with docker_errors("import the base image"), archive.open("rb") as stream:
            api.import_image(src=stream, repository=f"acrouter/system:{recipe()}")
    return tag


def provision(api: APIClient, system: str, image: str, command: str, labels: Mapping[str, str]) -> None:
    """Run a shell command in `system` as root, with the network and the recipe's files in /opt, and make it `image`.

    Raises:
        ImageError: it failed; the message carries the end of what it said.
    """
    certificates = certificate_bundle()
    with docker_errors(f"provision {image}"):
        container = api.create_container(
            system,
            entrypoint=NO_ENTRYPOINT,
            command=["sleep", str(_BUILD_TIMEOUT_S)],
            user="0:0",
            host_config=api.create_host_config(init=True, network_mode="bridge", tmpfs={"/tmp": "exec,mode=1777"}),  # noqa: S108
        )["Id"]
        try:
            api.start(container)
            api.put_archive(container, "/opt", _recipe_archive(certificates))
            ca = f"cp /opt/certificates.pem {CERTIFICATES} && rm /opt/certificates.pem && " if certificates else ""
            execution = api.exec_create(
                container,
                ["sh", "-c", f"{ca}{command} && rm /opt/provision.sh /opt/requirements.txt"],
                environment=setup_environment(certificates is not None),
            )["Id"]
            output = api.exec_start(execution)
            if api.exec_inspect(execution)["ExitCode"]:
                raise ImageError(f"{system} cannot be provisioned:\n{output.decode(errors='replace')[-2000:]}")
            repository, tag = docker.utils.parse_repository_tag(image)
            api.commit(
                container,
                repository=repository,
                tag=tag or "latest",
                changes=changes(labels),
            )
        finally:
            api.remove_container(container, force=True, v=True)


def _recipe_archive(certificates: bytes | None) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name in ("provision.sh", "requirements.txt"):
            tar.add(_HERE / name, name)
        if certificates is not None:
            entry = tarfile.TarInfo("certificates.pem")
            entry.size = len(certificates)
            entry.mode = 0o644
            tar.addfile(entry, io.BytesIO(certificates))
    return buffer.getvalue()


NO_ENTRYPOINT = [""]
"""Of a container: not even its image's. One of its own would be inherited by what is committed from it, whatever a
Dockerfile's line says (Docker 20.10)."""


def changes(labels: Mapping[str, str]) -> list[str]:
    """Return the lines of a Dockerfile that make a container an image of ours."""
    return ["ENTRYPOINT []", 'CMD ["bash"]', *(f'LABEL {name}="{value}"' for name, value in labels.items())]


@contextmanager
def docker_errors(what: str) -> Iterator[None]:
    """Turn Docker's errors into an ImageError that says what could not be done."""
    try:
        yield
    except (docker.errors.DockerException, requests.RequestException) as error:
        raise ImageError(f"Cannot {what}: {error}") from error

"""Which backend is chosen, and what is said where none works."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
import requests

from sandbox import bubblewrap_command
from sandbox.backends import choose_backend
from sandbox.errors import ImageError, SandboxUnavailable
from sandbox.images import build
from sandbox.types import Limits


@pytest.fixture
def no_daemon(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")


@pytest.fixture
def no_bubblewrap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    bubblewrap_command.version.cache_clear()


@pytest.fixture
def forbidden_bubblewrap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """It is installed, and the kernel lets it make no namespaces."""
    program = tmp_path / "bwrap"
    program.write_text(
        '#!/bin/sh\nif [ "$1" = --version ]; then echo bubblewrap 0.8.0; else echo No permissions >&2; exit 1; fi'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    bubblewrap_command.version.cache_clear()
    yield
    bubblewrap_command.version.cache_clear()


def choose(kind: str, tmp_path: Path) -> str:
    backend = choose_backend(kind, base_image="acrouter/base:1", data_dir=tmp_path, limits=Limits())  # type: ignore[arg-type]
    return backend.name


@pytest.mark.docker
def test_docker_is_taken_where_its_daemon_answers(tmp_path: Path) -> None:
    assert choose("auto", tmp_path) == choose("docker", tmp_path) == "docker"


@pytest.mark.bubblewrap
@pytest.mark.usefixtures("no_daemon")
def test_bubblewrap_is_taken_without_a_daemon(tmp_path: Path) -> None:
    assert choose("auto", tmp_path) == choose("bubblewrap", tmp_path) == "bubblewrap"
    with pytest.raises(SandboxUnavailable, match=r"does not answer.*apt-get install docker\.io"):
        choose("docker", tmp_path)


@pytest.mark.bubblewrap
@pytest.mark.usefixtures("no_daemon")
def test_bubblewrap_takes_the_place_of_no_runtime_that_was_asked_for(tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailable, match=r"does not answer"):
        choose_backend("auto", base_image="acrouter/base:1", data_dir=tmp_path, limits=Limits(), runtime="runsc")


@pytest.mark.usefixtures("no_daemon", "no_bubblewrap")
def test_without_either_the_error_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailable) as refused:
        choose("auto", tmp_path)
    assert "apt-get install docker.io" in str(refused.value)
    assert "apt-get install bubblewrap" in str(refused.value)


@pytest.mark.usefixtures("forbidden_bubblewrap")
def test_a_bubblewrap_that_may_not_start_is_not_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailable) as refused:
        choose("bubblewrap", tmp_path)
    assert "No permissions. An ordinary user needs unprivileged user namespaces" in str(refused.value)
    assert "apt-get install" not in str(refused.value)


@pytest.mark.docker
def test_who_may_not_use_the_daemon_is_not_told_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ping(_: object) -> None:
        raise requests.ConnectionError("('Connection aborted.', PermissionError(13, 'Permission denied'))")

    monkeypatch.setattr(docker.APIClient, "ping", ping)
    with pytest.raises(SandboxUnavailable, match=r"may not use the Docker daemon.*the group `docker`") as refused:
        choose("docker", tmp_path)
    assert "apt-get install" not in str(refused.value)


@pytest.mark.docker
@pytest.mark.parametrize("kind", ["auto", "docker"])
@pytest.mark.parametrize(
    ("limits", "runtime", "told"),
    [
        (Limits(), "rnsc", r"^ACROUTER_SANDBOX_RUNTIME: the Docker daemon knows no runtime 'rnsc'\. It knows .*runc"),
        (Limits(cpus=4096), "", r"^ACROUTER_SANDBOX_CPUS=4096: Docker takes 0\.01 to \d+, the processors"),
        (Limits(cpus=0.001), "", r"^ACROUTER_SANDBOX_CPUS=0\.001: "),
        (Limits(service_cpus=4096), "", r"^ACROUTER_SERVICE_CPUS=4096: "),
    ],
)
def test_what_docker_would_refuse_of_each_sandbox_is_told_at_the_start(
    tmp_path: Path, kind: str, limits: Limits, runtime: str, told: str
) -> None:
    with pytest.raises(SandboxUnavailable, match=told):
        choose_backend(kind, base_image="acrouter/base:1", data_dir=tmp_path, limits=limits, runtime=runtime)  # type: ignore[arg-type]


@pytest.mark.docker
def test_a_runtime_that_is_a_shim_need_not_be_listed(tmp_path: Path) -> None:
    shim = "io.containerd.runsc.v1"
    choose_backend("docker", base_image="acrouter/base:1", data_dir=tmp_path, limits=Limits(), runtime=shim)


@pytest.mark.docker
def test_both_recipes_share_their_contents() -> None:
    dockerfile = (Path(build.__file__).parent / "Dockerfile").read_text(encoding="utf-8")
    for name in ("packages.txt", "requirements.txt", "provision.sh"):
        assert name in dockerfile
    image = docker.from_env().images.get("acrouter/base:1")
    assert image.labels["acrouter.recipe"] == build.recipe()


@pytest.mark.docker
@pytest.mark.usefixtures("no_bubblewrap")
def test_an_image_that_cannot_be_made_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_DEBIAN", "127.0.0.1:1/debian:bookworm-slim")  # a registry that is not there
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    said: list[str] = []

    def progress(message: str) -> None:
        said.append(message)

    with pytest.raises(ImageError, match=r"debootstrap is not installed.*docker build -t acrouter/base:1"):
        build.ensure_base(docker.from_env().api, "acrouter/never-made:1", progress)
    assert said


@pytest.mark.docker
def test_a_name_with_a_registry_is_pulled_and_not_built() -> None:
    with pytest.raises(ImageError, match="Cannot pull 127"):
        build.ensure_base(docker.from_env().api, "127.0.0.1:1/acme/base:1")


def test_the_guest_refuses_to_run_outside_of_a_sandbox() -> None:
    # It would kill every process it can see.
    done = subprocess.run(
        [sys.executable, "-m", "sandbox.guest", "{}"], capture_output=True, text=True, check=False, timeout=20
    )
    assert done.returncode == 1
    assert "runs only as the first process of a sandbox" in done.stderr

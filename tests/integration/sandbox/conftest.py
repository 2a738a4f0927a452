"""A backend of each kind, with its base image, and one sandbox for all tests of a module."""

import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from sandbox.bubblewrap_backend import BubblewrapBackend
from sandbox.docker_backend import DockerBackend
from sandbox.types import Backend, Limits, Sandbox, SandboxSpec
from tests.support.backends import bubblewrap_with_shared_base

SMALL = Limits(memory_mb=256, cpus=1.0, pids=64, disk_mb=64, output_bytes=100_000)
OWNER = {"task": "1", "owner": "tests"}


@pytest.fixture(scope="session")
def docker_backend() -> DockerBackend:
    """Docker, seen as an installation of its own: other runs on this daemon are left alone."""
    backend = DockerBackend("acrouter/base:1", SMALL, instance=f"tests-{uuid.uuid4().hex}")
    backend.ensure_base()
    return backend


@pytest.fixture(scope="session")
def bubblewrap_backend(tmp_path_factory: pytest.TempPathFactory) -> BubblewrapBackend:
    return bubblewrap_with_shared_base(tmp_path_factory.mktemp("bubblewrap"), SMALL)


@pytest.fixture(
    scope="session",
    params=[
        pytest.param("docker", marks=pytest.mark.docker),
        pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
    ],
)
def backend(request: pytest.FixtureRequest) -> Backend:
    """Each kind in turn."""
    found: Backend = request.getfixturevalue(f"{request.param}_backend")
    return found


@pytest.fixture(scope="module")
def sandbox(backend: Backend) -> Iterator[Sandbox]:
    """One small sandbox for all tests of a module: they must leave it working."""
    opened = backend.open(SandboxSpec(backend.ensure_base(), OWNER, SMALL))
    yield opened
    opened.close()


@pytest.fixture
def fresh(backend: Backend) -> Iterator[Sandbox]:
    """A sandbox that the test may wreck."""
    opened = backend.open(SandboxSpec(backend.ensure_base(), OWNER, SMALL))
    yield opened
    opened.close()


@pytest.fixture
def secret_environment(monkeypatch: pytest.MonkeyPatch) -> str:
    """A canary in the host's environment."""
    canary = f"canary-{uuid.uuid4().hex}"
    monkeypatch.setenv("ACROUTER_GITHUB_WEBHOOK_SECRET", canary)
    return canary


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    """A canary in a file of the host."""
    path = tmp_path / "secret.txt"
    path.write_text("canary", encoding="utf-8")
    return path


@pytest.fixture
def forget(backend: Backend) -> Iterator[list[str]]:
    """Removes the images that a test names."""
    images: list[str] = []
    yield images
    for image in images:
        if backend.name == "docker":
            docker.from_env().images.remove(image, force=True)
        elif isinstance(backend, BubblewrapBackend):
            shutil.rmtree(backend.environment(image))

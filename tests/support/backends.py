"""Both real backends, as one fixture: import `backend` into a test module."""

from pathlib import Path

import pytest

from sandbox.bubblewrap_backend import BubblewrapBackend
from sandbox.docker_backend import DockerBackend
from sandbox.types import Backend, Limits

LABELS = {"task": "tests", "owner": "tests"}


@pytest.fixture(
    scope="module",
    params=[pytest.param("docker", marks=pytest.mark.docker), pytest.param("bubblewrap", marks=pytest.mark.bubblewrap)],
)
def backend(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Backend:
    """Docker, then bubblewrap."""
    return make_backend(request.param, tmp_path_factory.mktemp("backend"))


def make_backend(name: str, folder: Path) -> Backend:
    if name == "docker":
        return DockerBackend("acrouter/base:1", Limits(), instance="agent-tests")
    return BubblewrapBackend(folder, Limits())

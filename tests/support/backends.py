"""Both real backends, as one fixture: import `backend` into a test module."""

import fcntl
from pathlib import Path

import pytest

from sandbox.bubblewrap_backend import BubblewrapBackend
from sandbox.docker_backend import DockerBackend
from sandbox.types import Backend, Limits

LABELS = {"task": "tests", "owner": "tests"}
_ENVIRONMENTS = Path(__file__).resolve().parents[2] / ".cache" / "bubblewrap-environments"


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
    return bubblewrap_with_shared_base(folder, Limits())


def bubblewrap_with_shared_base(data_dir: Path, limits: Limits) -> BubblewrapBackend:
    """Return a backend whose base environment is there already, made once for all runs.

    It takes half a minute, so processes that ask at the same time wait for the first. All else in `data_dir` is the
    backend's own.
    """
    _ENVIRONMENTS.mkdir(parents=True, exist_ok=True)
    (data_dir / "bubblewrap").mkdir()
    (data_dir / "bubblewrap" / "environments").symlink_to(_ENVIRONMENTS)
    backend = BubblewrapBackend(data_dir, limits)
    backend.check()
    with _ENVIRONMENTS.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        backend.ensure_base()
    return backend

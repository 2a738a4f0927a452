"""Images of set-ups that nobody uses any more are removed, and no others."""

import os
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
from docker import APIClient

from sandbox.docker_backend import DockerBackend
from sandbox.types import CacheLimits, Limits, SandboxSpec, SetupPlan
from tests.support.repositories import make_archive

pytestmark = pytest.mark.docker
DAY_S = 86_400.0
TWO_WEEKS = CacheLimits(10**12, 14 * DAY_S)
LABELS = {"task": "1", "owner": "tests"}


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[DockerBackend]:
    instance = f"eviction-{uuid.uuid4().hex}"
    yield DockerBackend("acrouter/base:1", Limits(), instance=instance, data_dir=tmp_path)
    api = docker.from_env().api
    for image in api.images(filters={"label": [f"acrouter.made-by={instance}"]}, quiet=True):
        api.remove_image(image, force=True)


def set_up(backend: DockerBackend, tmp_path: Path, *, megabytes: int = 0) -> str:
    archive = make_archive(tmp_path / f"{uuid.uuid4().hex}.tar", {"a.txt": ""})
    plan = SetupPlan([f"head -c {megabytes}M /dev/zero > /opt/venv/filler"], uuid.uuid4().hex, "a test")
    return backend.prepare(archive, plan, timeout_s=60, labels=LABELS)


def later(monkeypatch: pytest.MonkeyPatch, days: float) -> None:
    now = time.time() + days * DAY_S
    monkeypatch.setattr("sandbox.docker_cache.time.time", lambda: now)


def here(api: APIClient, image: str) -> bool:
    return bool(api.images(name=image, quiet=True))


def test_an_image_goes_by_its_last_use_but_not_while_a_sandbox_runs_from_it(
    backend: DockerBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = docker.from_env().api
    image = set_up(backend, tmp_path)
    assert backend.evict(CacheLimits(0, 0)) == 0  # a task may be about to use it
    sandbox = backend.open(SandboxSpec(image, LABELS))
    later(monkeypatch, 30)
    assert backend.evict(TWO_WEEKS) == 0
    sandbox.close()
    assert backend.evict(TWO_WEEKS) == 1
    assert not here(api, image)
    assert here(api, "acrouter/base:1")


def test_an_image_that_a_task_is_about_to_take_up_stays(
    backend: DockerBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = set_up(backend, tmp_path)
    later(monkeypatch, 30)
    with backend._images.held(image):  # as while it is looked for, before its use is noted
        assert backend.evict(TWO_WEEKS) == 0
    assert here(docker.from_env().api, image)
    assert backend.evict(TWO_WEEKS) == 1


def test_the_longest_unused_go_until_the_rest_fits(
    backend: DockerBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = docker.from_env().api
    first, second = (set_up(backend, tmp_path, megabytes=8) for _ in range(2))
    noon = time.time() + DAY_S / 2
    os.utime(backend._cache._record(first), (noon, noon))  # used again later
    later(monkeypatch, 1)
    assert backend.evict(CacheLimits(12_000_000, 14 * DAY_S)) == 1
    assert (here(api, first), here(api, second)) == (True, False)


def test_what_others_made_on_this_daemon_is_left_alone(
    backend: DockerBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = set_up(backend, tmp_path)
    later(monkeypatch, 30)
    other = DockerBackend("acrouter/base:1", Limits(), instance=f"other-{uuid.uuid4().hex}", data_dir=tmp_path / "x")
    assert other.evict(CacheLimits(0, 0)) == 0
    assert here(docker.from_env().api, image)

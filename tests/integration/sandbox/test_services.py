"""Servers beside a sandbox: reached by the tests, reaching nothing, fresh each time, and gone with it."""

import uuid
from collections.abc import Iterator, Mapping
from typing import Any

import docker
import pytest
from docker import APIClient

from sandbox.bubblewrap_backend import BubblewrapBackend
from sandbox.docker_backend import DockerBackend
from sandbox.errors import ImageError
from sandbox.images.extra import ensure_packages
from sandbox.types import Limits, Sandbox, SandboxSpec, Service

LIMITS = Limits(memory_mb=256, cpus=1.0, pids=64, disk_mb=64, service_memory_mb=128, service_cpus=0.5)
LABELS = {"task": "1", "owner": "tests"}
ASK_REDIS = """python3 - <<'END'
import socket
for host in ("cache", "localhost"):
    with socket.create_connection((host, 6379), 5) as redis:
        redis.sendall(b"INCR seen\\r\\n")
        print(host, redis.recv(100).decode().strip())
END"""
REACH_OUT = """python3 - <<'END'
import os, socket
print(sorted(os.listdir("/sys/class/net")))
for address in ("1.1.1.1", "172.17.0.1", "169.254.169.254"):
    try:
        socket.create_connection((address, 80), 2)
        print("reached", address)
    except OSError:
        print("no way to", address)
END"""


@pytest.fixture(scope="module")
def backend() -> Iterator[DockerBackend]:
    made = DockerBackend("acrouter/base:1", LIMITS, instance=f"services-{uuid.uuid4().hex}")
    made.ensure_base()
    yield made
    made.remove_leftovers(frozenset)


@pytest.fixture(scope="module")
def api() -> APIClient:
    return docker.from_env().api


@pytest.fixture(scope="module")
def redis_image(backend: DockerBackend, api: APIClient) -> Iterator[str]:
    """Debian's own Redis, in an image with a volume as the official one has."""
    installed = ensure_packages(api, backend.ensure_base(), ["redis-server"], {})
    container = api.create_container(installed, entrypoint=["env"], command=["redis-server"])["Id"]
    api.commit(container, repository="acrouter-test/redis", tag="1", changes=["VOLUME /data", "WORKDIR /data"])
    api.remove_container(container)
    yield "acrouter-test/redis:1"
    api.remove_image("acrouter-test/redis:1", force=True)


def redis(image: str) -> Service:
    return Service("cache", image, command=("redis-server", "--save", "1 1"))


def start(backend: DockerBackend, *services: Service, task: str = "1") -> Sandbox:
    return backend.open(SandboxSpec(backend.ensure_base(), {**LABELS, "task": task}, LIMITS, services))


def ours(api: APIClient, backend: DockerBackend) -> list[Mapping[str, Any]]:
    label = f"acrouter.instance={backend._instance}"
    return list(api.containers(all=True, filters={"label": [label]}))


def services_of(api: APIClient, backend: DockerBackend) -> list[Mapping[str, Any]]:
    return [container for container in ours(api, backend) if "acrouter.service-of" in container["Labels"]]


@pytest.mark.docker
def test_a_service_answers_at_its_name_and_is_fresh_each_time(
    backend: DockerBackend, api: APIClient, redis_image: str
) -> None:
    volumes = api.volumes()["Volumes"]
    for _ in range(2):
        sandbox = start(backend, redis(redis_image))
        try:
            assert sandbox.execute(ASK_REDIS, timeout_s=20).output == "cache :1\nlocalhost :2\n"
        finally:
            sandbox.close()
    assert ours(api, backend) == []
    assert api.volumes()["Volumes"] == volumes


@pytest.mark.docker
def test_neither_the_tests_nor_the_service_reach_anything_else(backend: DockerBackend, api: APIClient) -> None:
    command = ("sh", "-c", REACH_OUT + "\nsleep 60")
    service = Service("web", backend.ensure_base(), command=command, writable=("/data",))
    sandbox = start(backend, service)
    try:
        said = sandbox.execute(REACH_OUT, timeout_s=20).output
        (container,) = services_of(api, backend)
        config = api.inspect_container(container["Id"])["HostConfig"]
        for _ in range(100):
            log = api.logs(container["Id"]).decode()
            if log.count("\n") == 4:
                break
    finally:
        sandbox.close()
    assert (
        said
        == log
        == "['lo']\n" + "".join(f"no way to {address}\n" for address in ("1.1.1.1", "172.17.0.1", "169.254.169.254"))
    )
    assert config["CapDrop"] == ["ALL"]
    assert config["ReadonlyRootfs"] is True
    assert config["Binds"] is None
    assert config["PidsLimit"] == LIMITS.pids
    assert config["Memory"] == config["MemorySwap"] == 128 << 20
    assert config["NanoCpus"] == 500_000_000
    assert config["Tmpfs"]["/data"].endswith("size=64m")


@pytest.mark.docker
def test_a_service_that_does_not_start_says_why_and_leaves_nothing(backend: DockerBackend, api: APIClient) -> None:
    broken = Service("database", backend.ensure_base(), command=("sh", "-c", "echo no such data; exit 3"))
    with pytest.raises(ImageError, match=r"(?s)database .* ended with exit code 3\..*no such data"):
        start(backend, broken)
    assert ours(api, backend) == []


@pytest.mark.docker
def test_the_services_of_a_killed_worker_are_removed_while_its_task_goes_on(
    backend: DockerBackend, api: APIClient
) -> None:
    idle = Service("idle", backend.ensure_base(), command=("sleep", "600"))
    killed, alive = start(backend, idle, task="7"), start(backend, idle, task="7")
    sandboxes = {
        one["Labels"]["acrouter.service-of"] for one in ours(api, backend) if "acrouter.service-of" in one["Labels"]
    }
    api.remove_container(sandboxes.pop(), force=True)  # as it ends when its worker does
    assert backend.remove_leftovers(lambda: frozenset({"7"})) == 1
    assert len(ours(api, backend)) == 2
    alive.close()
    killed.close()
    assert ours(api, backend) == []


@pytest.mark.docker
def test_what_cannot_be_had_is_named(backend: DockerBackend, bubblewrap_backend: BubblewrapBackend) -> None:
    with pytest.raises(ImageError, match="Cannot pull 127"):
        backend.ensure_service_image("127.0.0.1:1/postgres:16")
    with pytest.raises(ImageError, match="Cannot pull 127"):
        backend.ensure_image("127.0.0.1:1/python:3")
    for refuse in (bubblewrap_backend.ensure_image, bubblewrap_backend.ensure_service_image):
        with pytest.raises(ImageError, match="bubblewrap has no images"):
            refuse("postgres:16")
    spec = SandboxSpec(bubblewrap_backend.ensure_base(), LABELS, LIMITS, (Service("database", "postgres:16"),))
    with pytest.raises(ImageError, match="bubblewrap starts no services"):
        bubblewrap_backend.open(spec)


@pytest.mark.docker
def test_services_are_not_started_where_containers_share_no_network() -> None:
    with pytest.raises(ImageError, match="runsc"):
        DockerBackend("acrouter/base:1", LIMITS, runtime="runsc").ensure_service_image("postgres:16")


@pytest.fixture
def plain_python(api: APIClient, backend: DockerBackend) -> Iterator[str]:
    """An image with a Python that has pytest, and nothing of ours, as a repository may name it."""
    strip = "cp -r /opt/venv/lib/python3*/site-packages/* /usr/lib/python3/dist-packages && rm -rf /opt/venv /workspace"
    container = api.create_container(backend.ensure_base(), command=["sh", "-c", strip])["Id"]
    api.start(container)
    api.wait(container)
    api.commit(container, repository="acrouter-test/python", tag="1")
    api.remove_container(container)
    yield "acrouter-test/python:1"
    api.remove_image("acrouter-test/python:1", force=True)


@pytest.mark.docker
def test_an_image_of_the_repositorys_choice_becomes_a_sandboxs(
    backend: DockerBackend, api: APIClient, plain_python: str
) -> None:
    image = backend.ensure_image(plain_python)
    try:
        assert backend.ensure_image(plain_python) == image
        sandbox = backend.open(SandboxSpec(image, LABELS, LIMITS))
        try:
            assert sandbox.execute("python -m pytest --version && id -u", timeout_s=20).output.endswith("\n1000\n")
        finally:
            sandbox.close()
    finally:
        api.remove_image(image, force=True)


@pytest.mark.docker
def test_an_image_without_python_cannot_be_a_sandboxs(backend: DockerBackend, api: APIClient) -> None:
    container = api.create_container(backend.ensure_base(), command=["rm", "/usr/bin/python3"])["Id"]
    api.start(container)
    api.wait(container)
    api.commit(container, repository="acrouter-test/nothing", tag="1")
    api.remove_container(container)
    try:
        with pytest.raises(ImageError, match=r"(?s)cannot be a sandbox's: it needs python3.*python3 is missing"):
            backend.ensure_image("acrouter-test/nothing:1")
    finally:
        api.remove_image("acrouter-test/nothing:1", force=True)

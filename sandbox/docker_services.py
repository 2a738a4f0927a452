"""Servers beside a sandbox: containers that join its network, which has a loopback device and nothing else.

So a service is reached at localhost, as in a CI job, and there is no way out: no bridge, no gateway, no name server.
"""

import re
import time
from collections.abc import Mapping
from typing import Any

from docker import APIClient
from docker.types import LogConfig

from sandbox.docker_container import ROOT_CAPABILITIES
from sandbox.errors import ImageError
from sandbox.types import Limits, Service

SERVICE_LABEL = "acrouter.service-of"
"""Names the sandbox that a service belongs to."""
_READY_S = 60.0
_SETTLE_S = 0.5
"""A service that nobody can ask has to run for so long: most that cannot start end at once."""
_POLL_S = 0.05
_SECOND = 1_000_000_000
"""Docker counts in nanoseconds."""
_KNOWN_READY = {
    # Over TCP: during its first start Postgres answers at its socket only.
    "postgres": "pg_isready --quiet --host=127.0.0.1",
    "redis": "redis-cli ping | grep -q PONG",
    "valkey": "valkey-cli ping | grep -q PONG",
    "mysql": "mysqladmin ping --silent --host=127.0.0.1",
    "mariadb": "healthcheck.sh --connect --innodb_initialized",
}
"""By the last part of the image's name, without its tag."""


def start(api: APIClient, sandbox: str, service: Service, limits: Limits, labels: Mapping[str, str]) -> str:
    """Start a service in the network of the container `sandbox` and return its container's id."""
    volumes = api.inspect_image(service.image)["Config"].get("Volumes") or {}  # type: ignore[no-untyped-call]
    # Its disk is memory, and bounded: nothing of it is left on the host.
    disk_mb = limits.service_memory_mb // 2
    disks = dict.fromkeys((*volumes, *service.writable), f"rw,nosuid,nodev,mode=1777,size={disk_mb}m")
    scratch = dict.fromkeys(("/tmp", "/run"), "rw,nosuid,nodev,mode=1777,size=64m")  # noqa: S108
    memory = limits.service_memory_mb << 20
    host_config = api.create_host_config(
        cap_add=ROOT_CAPABILITIES,
        cap_drop=["ALL"],
        init=True,
        ipc_mode="private",
        log_config=LogConfig(type="json-file", config={"max-size": "1m", "max-file": "1"}),
        mem_limit=memory,
        memswap_limit=memory,
        nano_cpus=int(limits.service_cpus * _SECOND),
        network_mode=f"container:{sandbox}",
        pids_limit=limits.pids,
        read_only=True,
        security_opt=["no-new-privileges:true"],
        shm_size=128 << 20,
        tmpfs={**scratch, **disks},
    )
    ready = service.ready or _KNOWN_READY.get(_plain_name(service.image), "")
    container = str(
        api.create_container(
            service.image,
            command=list(service.command) or None,
            environment=dict(service.environment),
            labels={**labels, SERVICE_LABEL: sandbox},
            host_config=host_config,
            healthcheck=_probe(ready) if ready else None,
        )["Id"]
    )
    api.start(container)
    return container


def wait_ready(api: APIClient, container: str, service: Service) -> None:
    """Wait until a service can be used.

    Raises:
        ImageError: it ended, or was not ready in time; the message carries the end of what it said.
    """
    began = time.monotonic()
    while True:
        state: dict[str, Any] = api.inspect_container(container)["State"]
        running_s = time.monotonic() - began
        health = state.get("Health", {}).get("Status", "healthy" if running_s > _SETTLE_S else "starting")
        if not state["Running"]:
            raise _failed(api, container, service, f"ended with exit code {state['ExitCode']}")
        if health == "healthy":
            return
        if running_s > _READY_S:
            raise _failed(api, container, service, f"was not ready within {_READY_S:.0f} s")
        time.sleep(_POLL_S)


def _probe(command: str) -> dict[str, Any]:
    return {
        "test": ["CMD-SHELL", command],
        "interval": _SECOND // 4,
        "timeout": 5 * _SECOND,
        "retries": int(_READY_S * 4),
    }


def _failed(api: APIClient, container: str, service: Service, what: str) -> ImageError:
    said = api.logs(container, tail=20).decode("utf-8", "replace").strip()[-1000:]
    return ImageError(f"The service {service.name} ({service.image}) {what}." + (f"\n{said}" if said else ""))


def _plain_name(image: str) -> str:
    return re.split("[:@]", image.rsplit("/", maxsplit=1)[-1], maxsplit=1)[0]

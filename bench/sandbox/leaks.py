"""What sandboxes leave behind. Each one's traces are looked up while it runs, and looked for after its end.

Other people's containers come and go on a shared machine, so what is counted is what belongs to the sandboxes of this
run: by Docker's own records, by their processes and by their files on the disk.
"""

import os
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import docker.errors
from docker import APIClient
from docker.constants import DEFAULT_NUM_POOLS

from sandbox.docker_backend import INSTANCE_LABEL, DockerBackend
from sandbox.types import SandboxSpec

_WASTE = (
    "head -c 20000000 /dev/urandom > big; head -c 20000000 /dev/urandom > /tmp/big; "
    "(setsid sleep 1000 &); nohup sleep 1000 > /dev/null 2>&1 & true"
)
_SHARED_NETWORKS = frozenset({"none", "bridge", "host"})
_SETTLING_S = 15.0
"""Docker removes a container's shim and its files a moment after it says that the container is gone."""


@dataclass(frozen=True)
class Trace:
    """One thing that a running sandbox has on this machine."""

    kind: str
    """containers, volumes, networks, processes or disk."""
    name: str
    """An id of Docker's, a folder, or a process's id and start time, which tells it from a later one of that id."""


def count_leaks(
    backend: DockerBackend, instance: str, spec: SandboxSpec, *, one_by_one: int, at_once: int
) -> Mapping[str, int]:
    """Start, dirty and end sandboxes; return how many of their traces are left, by kind, 0 where all are gone.

    `descriptors` and `threads` are those that this process has more than before, idle connections to Docker aside.
    """
    api = docker.from_env().api
    _use(backend, api, instance, spec)  # opens connections that stay
    before = _own()
    traces: set[Trace] = set()
    for _ in range(one_by_one):
        traces |= _use(backend, api, instance, spec)
    barrier = threading.Barrier(at_once)
    with ThreadPoolExecutor(at_once) as pool:
        for found in pool.map(lambda _: _use(backend, api, instance, spec, barrier), range(at_once)):
            traces |= found
    deadline = time.monotonic() + _SETTLING_S
    left = {trace for trace in traces if _is_there(api, trace)}
    while left and time.monotonic() < deadline:
        time.sleep(0.2)
        left = {trace for trace in left if _is_there(api, trace)}
    counts = {kind: sum(trace.kind == kind for trace in left) for kind in sorted({trace.kind for trace in traces})}
    api.close()
    # The backend's docker-py keeps a connection for each of the last URLs that it asked, for each thread at once.
    kept = {"descriptors": DEFAULT_NUM_POOLS + at_once, "threads": 0}
    grown = {name: max(now - before[name] - kept[name], 0) for name, now in _own().items()}
    return counts | grown


def _use(
    backend: DockerBackend, api: APIClient, instance: str, spec: SandboxSpec, barrier: threading.Barrier | None = None
) -> set[Trace]:
    sandbox = backend.open(spec)
    try:
        sandbox.execute(_WASTE, timeout_s=60)
        if barrier:
            barrier.wait(60)
        traces = _traces(api, instance)
        if barrier:
            barrier.wait(60)
        return traces
    finally:
        sandbox.close()


def _traces(api: APIClient, instance: str) -> set[Trace]:
    """Look up what the running sandboxes of this instance have."""
    found: set[Trace] = set()
    for listed in api.containers(all=True, filters={"label": f"{INSTANCE_LABEL}={instance}"}):
        try:
            container: dict[str, Any] = api.inspect_container(listed["Id"])
        except docker.errors.NotFound:
            continue
        identity = str(container["Id"])
        found.add(Trace("containers", identity))
        found |= {Trace("volumes", mount["Name"]) for mount in container["Mounts"] if mount["Type"] == "volume"}
        found |= {Trace("networks", name) for name in {*container["NetworkSettings"]["Networks"]} - _SHARED_NETWORKS}
        found |= {Trace("processes", process) for process in _processes(identity, container["State"]["Pid"])}
        layer = (container.get("GraphDriver", {}).get("Data") or {}).get("UpperDir", "")
        folders = [layer, str(Path(container.get("ResolvConfPath") or "/nowhere/x").parent)]
        found |= {Trace("disk", folder) for folder in folders if folder and os.access(folder, os.R_OK)}
    return found


def _processes(container: str, first: int) -> set[str]:
    """Return a container's first process with all below it, and its shim on the host."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            mine = entry.name == str(first) or container in (entry / "cgroup").read_text()
            mine = mine or container.encode() in (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if mine:
            found.add(f"{entry.name} {_start_time(int(entry.name))}")
    return found


def _is_there(api: APIClient, trace: Trace) -> bool:
    if trace.kind == "processes":
        pid, started = trace.name.split()
        return _start_time(int(pid)) == started
    if trace.kind == "disk":
        return Path(trace.name).exists()
    look = {"containers": api.inspect_container, "volumes": api.inspect_volume, "networks": api.inspect_network}
    try:
        look[trace.kind](trace.name)
    except docker.errors.NotFound:
        return False
    return True


def _start_time(pid: int) -> str:
    """Return a process's start (field 22 of proc(5)'s stat), `-` where it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19]
    except OSError:
        return "-"


def _own() -> dict[str, int]:
    return {"descriptors": len(list(Path("/proc/self/fd").iterdir())), "threads": threading.active_count()}

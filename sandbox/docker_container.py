"""How a hardened container is described to Docker."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from docker import APIClient
from docker.types import LogConfig

from sandbox.guest_sandbox import AGENT_UID, HOME, guest_arguments
from sandbox.types import WORKSPACE, Limits

# All capabilities are dropped, then these few come back for the container's root alone. It is who our own commands run
# as: it reads and changes the agent's files (DAC_OVERRIDE, FOWNER, CHOWN), becomes the agent (SETUID, SETGID) and
# kills its processes (KILL). The agent's user has none of them, and no-new-privileges keeps it from getting any.
ROOT_CAPABILITIES = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID"]
_SHM_MB = 64


@dataclass(frozen=True)
class ContainerPlan:
    image: str
    limits: Limits
    labels: Mapping[str, str]
    for_setup: bool = False
    """With the network and a writable root, to be committed. The tree stays on a tmpfs, out of the image."""
    runtime: str | None = None
    """An OCI runtime such as gVisor's `runsc`; None: the daemon's default."""
    local_names: Sequence[str] = ()
    """Names of localhost besides its own."""


def create(api: APIClient, plan: ContainerPlan) -> str:
    """Create a container and return its id."""
    limits = plan.limits
    # tmpfs pages count as the container's memory: its own share comes on top, or a full disk would kill processes.
    memory = (limits.memory_mb + limits.disk_mb + _SHM_MB) << 20
    host_config = api.create_host_config(
        auto_remove=True,
        cap_add=ROOT_CAPABILITIES,
        cap_drop=["ALL"],
        extra_hosts=dict.fromkeys(plan.local_names, "127.0.0.1"),
        init=True,
        ipc_mode="private",
        log_config=LogConfig(type="none"),
        mem_limit=memory,
        memswap_limit=memory,
        nano_cpus=int(limits.cpus * 1_000_000_000),
        network_mode="bridge" if plan.for_setup else "none",
        pids_limit=limits.pids,
        read_only=not plan.for_setup,
        runtime=plan.runtime,
        security_opt=["no-new-privileges:true"],
        shm_size=_SHM_MB << 20,
        tmpfs=_tmpfs(limits),
    )
    container: dict[str, Any] = api.create_container(
        plan.image,
        entrypoint=["python3", *guest_arguments(limits, uid=AGENT_UID, rlimits={})],
        command=[],
        user="0:0",
        working_dir="/",
        hostname="sandbox",
        # Not detached: stdin closes with our connection (StdinOnce), so a container ends when its owner does.
        stdin_open=True,
        detach=False,
        tty=False,
        labels=dict(plan.labels),
        host_config=host_config,
    )
    return str(container["Id"])


def _tmpfs(limits: Limits) -> dict[str, str]:
    """Share the disk limit between the writable places, as `Limits.tree_bytes` says."""
    common = "rw,exec,nosuid,nodev"
    own = f"uid={AGENT_UID},gid={AGENT_UID}"
    eighth = max(limits.disk_mb // 8, 1)
    return {
        WORKSPACE: f"{common},{own},mode=0755,size={limits.tree_bytes},nr_inodes=400000",
        "/tmp": f"{common},mode=1777,size={2 * eighth}m,nr_inodes=100000",  # noqa: S108
        HOME: f"{common},{own},mode=0700,size={eighth}m,nr_inodes=50000",
    }

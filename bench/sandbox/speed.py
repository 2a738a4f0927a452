"""How fast a sandbox starts and how fast one command goes, beside mini-swe-agent's DockerEnvironment.

Both start from the same warm image and take turns, so that whatever else the machine does meets both. mini-swe-agent's
runs as it is shipped: root, a network, no limits. Ours runs with all of its own.
"""

import shutil
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sandbox.types import Backend, SandboxSpec
from store.errors import AcrouterError

_COMMAND = "true"
_ENDING_S = 60.0


class PeerMissing(AcrouterError):  # noqa: N818
    """mini-swe-agent's environment cannot be run here."""


@dataclass(frozen=True)
class Speed:
    """Seconds of each round."""

    start: Sequence[float]
    """From nothing to the end of the first command."""
    execute: Sequence[float]

    @property
    def start_s(self) -> float:
        return statistics.median(self.start)

    @property
    def execute_s(self) -> float:
        return statistics.median(self.execute)


def compare(backend: Backend, spec: SandboxSpec, *, rounds: int, commands: int) -> Mapping[str, Speed]:
    """Return the times of `ours` and of `mini`, after one round of each that is not counted.

    Raises:
        PeerMissing: there is no `docker` command line, which mini-swe-agent's environment is made of.
    """
    if shutil.which("docker") is None:
        raise PeerMissing("mini-swe-agent's DockerEnvironment needs the `docker` command line (docker-cli).")
    times: dict[str, tuple[list[float], list[float]]] = {"ours": ([], []), "mini": ([], [])}
    for number in range(rounds + 1):
        for name, (starts, executions) in times.items():
            start, found = _ours(backend, spec, commands) if name == "ours" else _mini(spec.image, commands)
            if number:
                starts.append(start)
                executions.extend(found)
    return {name: Speed(starts, executions) for name, (starts, executions) in times.items()}


def _ours(backend: Backend, spec: SandboxSpec, commands: int) -> tuple[float, list[float]]:
    began = time.perf_counter()
    sandbox = backend.open(spec)
    try:
        sandbox.execute(_COMMAND, timeout_s=30)
        start = time.perf_counter() - began
        return start, [_timed(lambda: sandbox.execute(_COMMAND, timeout_s=30)) for _ in range(commands)]
    finally:
        sandbox.close()


def _mini(image: str, commands: int) -> tuple[float, list[float]]:
    import sandbox.agent.quiet  # noqa: F401  # isort: skip  (before mini-swe-agent itself)
    from minisweagent.environments.docker import DockerEnvironment

    began = time.perf_counter()
    environment = DockerEnvironment(image=image)
    try:
        environment.execute({"command": _COMMAND})
        start = time.perf_counter() - began
        return start, [_timed(lambda: environment.execute({"command": _COMMAND})) for _ in range(commands)]
    finally:
        # Its own `cleanup` stops the container in the background, for up to ten seconds into the next round.
        command = ["docker", "rm", "--force", str(environment.container_id)]
        subprocess.run(command, check=True, capture_output=True, timeout=_ENDING_S)
        environment.container_id = None


def _timed(call: Any) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began

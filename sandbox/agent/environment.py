"""Our sandbox behind mini-swe-agent's Environment protocol."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import sandbox.agent.quiet  # noqa: F401  # isort: skip  (before mini-swe-agent itself)
from minisweagent.exceptions import Submitted, TimeExceeded

from sandbox.types import WORKSPACE, Sandbox
from templates.escape import cut_middle, plain

SUBMIT = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


@dataclass(frozen=True)
class EnvironmentConfig:
    command_s: float
    """Time limit of one command."""
    observation_chars: int = 10_000
    """Of one command's output that the model sees: its head and its tail."""


class SandboxEnvironment:
    """Runs the model's commands. `remaining_s` tells how much of the attempt's wall time is left."""

    def __init__(self, sandbox: Sandbox, config: EnvironmentConfig, remaining_s: Callable[[], float]) -> None:
        self.config = config
        self._sandbox = sandbox
        self._remaining_s = remaining_s

    def execute(self, action: dict[str, Any], cwd: str = "") -> dict[str, Any]:  # noqa: ARG002  (the protocol's)
        """Run `action["command"]` and return its `output`, `returncode` and `exception_info`.

        Raises:
            Submitted: the command said that the work is done.
            TimeExceeded: no wall time is left.
            SandboxError: the sandbox is gone.
        """
        command = action.get("command")
        if not isinstance(command, str) or "\0" in command:
            return _refused("The command must be a string without NUL characters.")
        remaining = self._remaining_s()
        if remaining <= 0:
            raise TimeExceeded(exit_message("TimeExceeded"))
        command = command.encode("utf-8", "replace").decode()  # JSON may carry lone surrogates
        limit = min(self.config.command_s, remaining)
        result = self._sandbox.execute(command, timeout_s=limit)
        if result.exit_code == 0 and not result.timed_out and _submits(result.output):
            raise Submitted(exit_message("Submitted"))
        return {
            "output": cut_middle(plain(result.output), self.config.observation_chars),
            "returncode": result.exit_code,
            "exception_info": f"Killed with all its children after {limit:.0f} s." if result.timed_out else "",
            "extra": {"duration_s": round(result.duration_s, 3), "truncated": result.truncated},
        }

    def get_template_vars(self, **kwargs: Any) -> dict[str, Any]:
        """Return what prompts may know of the environment: nothing of the host."""
        return {"cwd": WORKSPACE} | kwargs

    def serialize(self) -> dict[str, Any]:
        """Return the environment's part of the trajectory."""
        kind = f"{type(self).__module__}.{type(self).__qualname__}"
        return {"info": {"config": {"environment": asdict(self.config), "environment_type": kind}}}


def exit_message(status: str, error: str = "") -> dict[str, Any]:
    """Return the message that ends mini-swe-agent's loop."""
    return {"role": "exit", "content": error or status, "extra": {"exit_status": status, "submission": ""}}


def _submits(output: str) -> bool:
    lines = output.lstrip().splitlines()
    return bool(lines) and lines[0].strip() == SUBMIT


def _refused(reason: str) -> dict[str, Any]:
    return {"output": "", "returncode": -1, "exception_info": reason}

"""Agents behind one Protocol. The one that is used unless the pool says otherwise is mini-swe-agent's `DefaultAgent`
over our sandbox, with money reserved before each call; `CommandLineAgent` is any other program.
"""

from collections.abc import Callable
from typing import Protocol

from sandbox.agent.command_line import CommandLineAgent
from sandbox.agent.runner import Step, run_agent
from sandbox.agent_types import AgentLimits, AgentRun, AgentTask, Meter, ModelEndpoint
from sandbox.types import Sandbox

__all__ = ["Agent", "CommandLineAgent", "Step", "run_agent"]


class Agent(Protocol):
    """Lets a model work on the tree that stands in a sandbox; the contract is that of `run_agent`."""

    def __call__(
        self,
        task: AgentTask,
        endpoint: ModelEndpoint,
        sandbox: Sandbox,
        meter: Meter,
        limits: AgentLimits,
        *,
        on_step: Callable[[Step], None] | None = None,
    ) -> AgentRun: ...

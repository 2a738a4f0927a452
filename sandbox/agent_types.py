"""What an agent is given, and what comes of its work."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class ModelEndpoint:
    """How to call one model, resolved: the key is here and nowhere else."""

    name: str
    litellm_id: str
    input_usd_per_mtok: float
    output_usd_per_mtok: float
    cached_input_usd_per_mtok: float | None = None
    api_base: str | None = None
    api_key: str | None = field(default=None, repr=False)
    context_tokens: int = 128_000
    max_output_tokens: int = 4096
    timeout_s: float = 120.0
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of `litellm.completion`, e.g. temperature."""

    def cost_usd(self, tokens_in: int, tokens_out: int, cached: int = 0) -> float:
        """Return the price of one call; `cached` of the input tokens were read from the provider's cache."""
        cached_price = (
            self.input_usd_per_mtok if self.cached_input_usd_per_mtok is None else self.cached_input_usd_per_mtok
        )
        return (
            (tokens_in - cached) * self.input_usd_per_mtok
            + cached * cached_price
            + tokens_out * self.output_usd_per_mtok
        ) / 1_000_000


class Meter(Protocol):
    """Money and the right to go on, asked before each model call and told after it."""

    def reserve(self, usd: float) -> str:
        """Reserve the most that the next call can cost and return the reservation's id.

        Raises:
            BudgetExceeded: a cap would be passed.
            StopRequested: the task was stopped or its lease is lost.
        """
        ...

    def settle(self, reservation: str, usd: float) -> None:
        """Replace a reservation by what the call cost (0 for a call that was never billed)."""
        ...


@dataclass(frozen=True)
class AgentLimits:
    steps: int = 40
    cost_usd: float = 1.0
    wall_s: float = 1800.0
    command_s: float = 60.0


@dataclass(frozen=True)
class AgentTask:
    """What the agent is told. All of it is untrusted and quoted in the prompt."""

    title: str
    text: str
    hint: str = ""
    test_command: str = ""
    notes: str = ""
    """The repository's contributor notes, cut."""
    previous: str = ""
    """What earlier attempts tried and how they failed."""


@dataclass(frozen=True)
class AgentRun:
    """How the agent ended. A patch may be empty."""

    exit_status: str
    steps: int
    tokens_in: int
    tokens_out: int
    cost_usd: float
    patch: str
    trajectory: Mapping[str, Any]
    """mini-swe-agent's format."""
    error: str = ""

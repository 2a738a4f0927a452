"""One attempt of one model at one task."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sandbox import baseline
from sandbox.agent import prompt
from sandbox.agent_types import AgentLimits, AgentRun, AgentTask, Meter, ModelEndpoint
from sandbox.errors import BudgetExceeded, SandboxError, StopRequested
from sandbox.secret_patterns import scrub
from sandbox.types import Sandbox

if TYPE_CHECKING:
    from sandbox.agent.loop import Loop

_TAIL = 2_000


@dataclass(frozen=True)
class Step:
    """One step of a running agent, for those who watch it and those who keep it."""

    number: int
    """Counts the model's answers from 1."""
    command: str
    """Empty where the model's answer held none."""
    output_tail: str
    cost_usd: float
    """So far."""
    trajectory: Callable[[], Mapping[str, Any]]
    """Gives the trajectory up to here; called only by those who store it."""


def run_agent(
    task: AgentTask,
    endpoint: ModelEndpoint,
    sandbox: Sandbox,
    meter: Meter,
    limits: AgentLimits,
    *,
    on_step: Callable[[Step], None] | None = None,
    backoff_s: Sequence[float] = (1.0, 4.0),
) -> AgentRun:
    """Let a model work on the tree that stands in `sandbox` and return what came of it.

    `exit_status` is mini-swe-agent's, or one of ours:

    - `Submitted`: the model says that it is done;
    - `LimitsExceeded` (steps, or the next call could pass `limits.cost_usd`), `TimeExceeded`, `RepeatedFormatError`
      (three answers in a row without a command), `ContextExceeded`: the attempt failed, the model is usable;
    - `BudgetExceeded`, `Stopped`: the meter, or `on_step`, ended it;
    - `ModelError`: the endpoint is unusable (unreachable, key refused, unknown model), `error` says why;
    - `RequestRefused`: the provider does not take this request (HTTP 400, 413, 422), for its words or its shape;
    - `SandboxError`: the sandbox died under the agent;
    - `ProgramError`: a command line agent's program is not there, fell over or misused its line to the model.

    The patch is what stands in the tree at that moment, whatever the status. A call is tried again after each pause of
    `backoff_s` (seconds) on 429, 5xx and lost connections; each try is reserved and settled by itself.

    Raises:
        SandboxError: the sandbox was unusable before the first step.
    """
    # Seconds of import, for those that only look at a run's types.
    from sandbox.agent.environment import EnvironmentConfig, SandboxEnvironment, exit_message
    from sandbox.agent.loop import Loop
    from sandbox.agent.model import MeteredModel

    baseline.lay(sandbox)
    deadline = time.monotonic() + limits.wall_s

    def remaining_s() -> float:
        return deadline - time.monotonic()

    model = MeteredModel(
        endpoint, meter, cost_limit_usd=limits.cost_usd, remaining_s=remaining_s, backoff_s=tuple(backoff_s)
    )
    loop = Loop(
        model,
        SandboxEnvironment(sandbox, EnvironmentConfig(command_s=limits.command_s), remaining_s),
        system=prompt.system_prompt(text_mode=model.text_mode),
        instance=prompt.instance_prompt(task, limits),
        steps=limits.steps,
        secrets=(endpoint.api_key,),
        after_step=lambda loop: on_step(_step(loop)) if on_step else None,
    )
    try:
        loop.converse()
    except BudgetExceeded as error:
        loop.add_messages(exit_message("BudgetExceeded", str(error)))
    except StopRequested as error:
        loop.add_messages(exit_message("Stopped", str(error)))
    except SandboxError as error:
        loop.add_messages(exit_message("SandboxError", str(error)))
    return _finished(loop, sandbox, endpoint)


def _finished(loop: "Loop", sandbox: Sandbox, endpoint: ModelEndpoint) -> AgentRun:
    last = loop.messages[-1]
    status = str(last.get("extra", {}).get("exit_status", ""))
    error = "" if status == "Submitted" or last["content"] == status else str(last["content"])
    patch = ""
    try:
        patch = baseline.take_patch(sandbox)
    except SandboxError as problem:
        error = f"{error} The patch could not be taken out: {problem}".strip()
    return AgentRun(
        exit_status=status,
        steps=loop.model.answers,
        tokens_in=loop.model.tokens_in,
        tokens_out=loop.model.tokens_out,
        cost_usd=loop.model.spent_usd,
        patch=patch,
        trajectory=loop.serialize(),
        error=scrub(error, endpoint.api_key),
    )


def _step(loop: "Loop") -> Step:
    return Step(
        number=loop.model.answers,
        command="\n".join(loop.last_actions()) if loop.messages[-1].get("role") != "exit" else "",
        output_tail=str(loop.messages[-1].get("content") or "")[-_TAIL:],
        cost_usd=loop.model.spent_usd,
        trajectory=loop.serialize,
    )

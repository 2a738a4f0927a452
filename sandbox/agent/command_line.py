"""Another agent than mini-swe-agent: any program of the sandbox's image that works from a command line, such as Codex
or Claude Code. It has no network. Its model is behind a web server on the loopback address, whose requests go over the
sandbox's own line to `ModelProxy` on the host, which alone has the key and the budget.
"""

import json
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandbox import baseline
from sandbox.agent import prompt
from sandbox.agent.clean import clean
from sandbox.agent.runner import Step
from sandbox.agent_types import AgentLimits, AgentRun, AgentTask, Meter, ModelEndpoint
from sandbox.errors import SandboxError
from sandbox.secret_patterns import scrub
from sandbox.types import CommandResult, ConversingSandbox, Sandbox
from templates import render
from templates.escape import cut_middle, plain

if TYPE_CHECKING:
    from sandbox.agent.model_proxy import ModelProxy

_PROMPT = "/tmp/acrouter-task.md"  # noqa: S108  (inside the sandbox)
_OUTPUT_CHARS = 10_000


@dataclass(frozen=True)
class CommandLineAgent:
    """How the program is started. Fulfils `sandbox.agent.Agent`.

    In `command` and in the environment's values `{url}` is where its model is, `{model}` the model's name and
    `{prompt}` the file that holds the task. The program works in the current folder and ends by itself.
    """

    command: str
    environment: Mapping[str, str] = field(default_factory=dict)

    def __call__(
        self,
        task: AgentTask,
        endpoint: ModelEndpoint,
        sandbox: Sandbox,
        meter: Meter,
        limits: AgentLimits,
        *,
        on_step: Callable[[Step], None] | None = None,
        backoff_s: Sequence[float] = (),  # noqa: ARG002  (the program has its own)
    ) -> AgentRun:
        """Let the program work, and return what came of it; see `run_agent`. A step is one answer of the model.

        Raises:
            SandboxError: the sandbox was unusable before the first step, or its commands have no line to the host.
        """
        from sandbox.agent.model_proxy import ModelProxy  # its HTTP client takes a while to import

        if not isinstance(sandbox, ConversingSandbox):
            raise SandboxError("The commands of this sandbox have no line to the host.")
        baseline.lay(sandbox)
        words = f"{prompt.system_prompt(text_mode=False)}\n{prompt.instance_prompt(task, limits)}"
        told = render("prompts/command_line.md.j2", words=words)
        sandbox.put_file(_PROMPT, told.encode("utf-8", "replace"))
        deadline = time.monotonic() + limits.wall_s

        def tell(proxy: "ModelProxy") -> None:
            if on_step:
                last = proxy.calls[-1]
                so_far = partial(self._trajectory, told, proxy, endpoint)
                on_step(Step(len(proxy.calls), "", last.text[-2000:], proxy.spent_usd, so_far))

        proxy = ModelProxy(endpoint, meter, limits, remaining_s=lambda: deadline - time.monotonic(), after_call=tell)
        result, error = None, ""
        try:
            result = sandbox.converse(self._line(endpoint), timeout_s=limits.wall_s, relay=proxy)
        except SandboxError as problem:
            error = str(problem)
        if proxy.failure is not None:
            raise proxy.failure
        return self._finished(told, proxy, endpoint, sandbox, result, error)

    def _line(self, endpoint: ModelEndpoint) -> str:
        model = endpoint.litellm_id.split("/", 1)[-1]

        def filled(text: str) -> str:
            return text.replace("{model}", model).replace("{prompt}", _PROMPT)

        settings = json.dumps(
            {
                "command": filled(self.command),
                "environment": {name: filled(value) for name, value in self.environment.items()},
            }
        )
        source = (Path(__file__).parent / "relay_server.py").read_text(encoding="utf-8")
        return f"exec python3 -I -S -c {shlex.quote(source)} {shlex.quote(settings)}"

    def _finished(
        self,
        told: str,
        proxy: "ModelProxy",
        endpoint: ModelEndpoint,
        sandbox: Sandbox,
        result: CommandResult | None,
        error: str,
    ) -> AgentRun:
        status, why = _ending(proxy, result, error)
        patch = ""
        try:
            patch = baseline.take_patch(sandbox)
        except SandboxError as problem:
            why = f"{why} The patch could not be taken out: {problem}".strip()
        return AgentRun(
            exit_status=status,
            steps=len(proxy.calls),
            tokens_in=sum(call.tokens_in for call in proxy.calls),
            tokens_out=sum(call.tokens_out for call in proxy.calls),
            cost_usd=proxy.spent_usd,
            patch=patch,
            trajectory=self._trajectory(told, proxy, endpoint, status, result),
            error=scrub(why, endpoint.api_key),
        )

    def _trajectory(
        self,
        told: str,
        proxy: "ModelProxy",
        endpoint: ModelEndpoint,
        status: str = "",
        result: CommandResult | None = None,
    ) -> Mapping[str, Any]:
        """What the model said, in mini-swe-agent's format. What the program did with it shows in its output alone."""
        messages: list[dict[str, Any]] = [{"role": "user", "content": told}]
        messages += [
            {
                "role": "assistant",
                "content": call.text,
                "extra": {
                    "actions": [],
                    "cost": call.cost_usd,
                    "timestamp": call.at,
                    "response": {"usage": {"in": call.tokens_in, "out": call.tokens_out, "estimated": False}},
                },
            }
            for call in proxy.calls
        ]
        if result is not None:
            output = cut_middle(plain(result.output), _OUTPUT_CHARS)
            messages.append({"role": "exit", "content": output, "extra": {"exit_status": status, "submission": ""}})
        stats = {"instance_cost": proxy.spent_usd, "api_calls": len(proxy.calls)}
        info = {"model_stats": stats, "exit_status": status, "config": {"agent": {"command": self.command}}}
        trajectory: Mapping[str, Any] = clean(
            {"info": info, "messages": messages, "trajectory_format": "mini-swe-agent-1.1"}, endpoint.api_key
        )
        return trajectory


def _ending(proxy: "ModelProxy", result: CommandResult | None, error: str) -> tuple[str, str]:
    if proxy.ended is not None:
        return proxy.ended
    if result is None:
        return "SandboxError", error
    if result.timed_out:
        return "TimeExceeded", ""
    if result.exit_code == 0 and proxy.calls:
        return "Submitted", ""
    if proxy.unusable and not proxy.calls:
        return "ModelError", proxy.unusable
    return "ProgramError", f"The agent's program ended with {result.exit_code}: {plain(result.output).strip()[-500:]}"

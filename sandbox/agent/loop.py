"""mini-swe-agent's `DefaultAgent` with a word to the caller after each step, and a trajectory that can be stored."""

from collections.abc import Callable
from typing import Any

import sandbox.agent.quiet  # noqa: F401  # isort: skip  (before mini-swe-agent itself)
from minisweagent.agents.default import DefaultAgent

from sandbox.agent.clean import clean
from sandbox.agent.environment import SandboxEnvironment
from sandbox.agent.model import MeteredModel


class Loop(DefaultAgent):  # type: ignore[misc]  # mini-swe-agent is untyped here
    """One attempt's conversation. `after_step` is called after each answer of the model, a useless one too."""

    model: MeteredModel
    env: SandboxEnvironment

    def __init__(
        self,
        model: MeteredModel,
        environment: SandboxEnvironment,
        *,
        system: str,
        instance: str,
        steps: int,
        secrets: tuple[str | None, ...],
        after_step: Callable[["Loop"], None],
    ) -> None:
        # mini-swe-agent renders these two with Jinja2. The prompts hold strangers' text, so they go in as values.
        super().__init__(
            model,
            environment,
            system_template="{{ system_prompt }}",
            instance_template="{{ instance_prompt }}",
            step_limit=steps,
            cost_limit=0.0,  # the model keeps it, before the call
        )
        self._prompts = {"system_prompt": system, "instance_prompt": instance}
        self._secrets = secrets
        self._after_step = after_step
        self._told = 0
        self._clean_messages: list[Any] = []

    def converse(self) -> None:
        """Run until the agent ends.

        Raises:
            SandboxError: the sandbox is gone, or `after_step` raised it.
        """
        self.run(**self._prompts)

    def save(self, path: object, *_: object) -> dict[str, Any]:  # noqa: ARG002  (mini-swe-agent's hook after each step)
        if self.model.answers > self._told:
            self._told = self.model.answers
            self._after_step(self)
        return {}

    def serialize(self, *extra: dict[str, Any]) -> dict[str, Any]:
        """Return the trajectory in mini-swe-agent's format, without secrets and without what JSON stores refuse."""
        self.cost = self.model.spent_usd
        trajectory: dict[str, Any] = super().serialize(*extra)
        del trajectory["messages"]
        # Messages are only ever added. Cleaning all of them at each step would cost the square of their number.
        new = self.messages[len(self._clean_messages) :]
        self._clean_messages += [clean(message, *self._secrets) for message in new]
        cleaned = {name: clean(part, *self._secrets) for name, part in trajectory.items()}
        return {**cleaned, "messages": list(self._clean_messages)}

    def last_actions(self) -> list[str]:
        """Return the commands of the model's last message."""
        for message in reversed(self.messages):
            if message.get("role") == "assistant":
                return [str(action.get("command", "")) for action in message.get("extra", {}).get("actions", [])]
        return []

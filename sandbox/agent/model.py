"""A model behind mini-swe-agent's Model protocol, with money reserved before each call and settled after it."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sandbox.agent.quiet  # noqa: F401  # isort: skip  (before the libraries themselves)
from minisweagent.exceptions import FormatError, InterruptAgentFlow, LimitsExceeded, TimeExceeded
from minisweagent.models.litellm_model import LitellmModel
from minisweagent.models.utils.actions_text import format_observation_messages, parse_regex_actions
from minisweagent.models.utils.actions_toolcall import BASH_TOOL, parse_toolcall_actions

from sandbox.agent import usage
from sandbox.agent.clean import clean
from sandbox.agent.completion import complete
from sandbox.agent.environment import exit_message
from sandbox.agent.failures import CallFailure, understand
from sandbox.agent_types import Meter, ModelEndpoint
from sandbox.errors import BudgetExceeded, StopRequested
from sandbox.secret_patterns import scrub
from templates import source

_TEXT_ACTION = r"```(?:bash|sh|mswea_bash_command)[ \t]*\r?\n(.*?)\r?\n```"


class Ended(InterruptAgentFlow):  # type: ignore[misc]  # untyped, too
    """Ends the run with an exit message of ours."""


class MeteredModel(LitellmModel):  # type: ignore[misc]  # mini-swe-agent is untyped here
    """Calls one model. Every try, repeated ones too, has a reservation of its own.

    Ends the run with exit status `BudgetExceeded` or `Stopped` (the meter's word), `LimitsExceeded` (the next call
    could pass `cost_limit_usd`), `TimeExceeded`, `ContextExceeded`, `RequestRefused` (the provider does not take what
    it was sent), or `ModelError` (the endpoint cannot be used).
    """

    def __init__(
        self,
        endpoint: ModelEndpoint,
        meter: Meter,
        *,
        cost_limit_usd: float,
        remaining_s: Callable[[], float],
        backoff_s: Sequence[float],
    ) -> None:
        super().__init__(
            model_name=endpoint.litellm_id,
            observation_template=source("prompts/observation.md.j2"),
            format_error_template=source("prompts/format_error.md.j2"),
            set_cache_control="default_end" if usage.caches_prompts(endpoint) else None,
        )
        self.text_mode = bool(endpoint.extra.get("text_mode", False))
        self.spent_usd = 0.0
        self.answers = 0
        """Calls that were answered, repeated tries not counted."""
        self.tokens_in = 0
        self.tokens_out = 0
        self._endpoint = endpoint
        self._meter = meter
        self._cost_limit_usd = cost_limit_usd
        self._remaining_s = remaining_s
        self._backoff_s = backoff_s
        self._tools: list[Mapping[str, Any]] = [] if self.text_mode else [BASH_TOOL]

    def query(self, messages: list[dict[str, Any]], **kwargs: Any) -> dict[str, Any]:  # noqa: ARG002  (the protocol's)
        """Ask the model once and return its message with the actions in `extra`.

        Raises:
            FormatError: it answered something that holds no command; the call was paid for all the same.
            InterruptAgentFlow: the run ends, see the class.
        """
        prepared = self._prepare_messages_for_api(messages)
        expected = usage.estimate(self._endpoint, prepared, self._tools)
        if expected.likely + self._endpoint.max_output_tokens > self._endpoint.context_tokens:
            raise Ended(exit_message("ContextExceeded", f"The conversation fills {self._endpoint.name}'s context."))
        before = self.spent_usd
        response, used = self._call_with_retries(prepared, expected)
        choice = response.choices[0] if getattr(response, "choices", None) else None
        # Cleaned at once: it is sent back with the next call.
        message = clean(choice.message.model_dump()) if choice else {"role": "assistant", "content": ""}
        details = {
            "response": {
                "id": getattr(response, "id", ""),
                "model": getattr(response, "model", ""),
                "finish_reason": choice.finish_reason if choice else "",
                "usage": {"in": used.tokens_in, "out": used.tokens_out, "estimated": used.estimated},
            },
            "cost": self.spent_usd - before,
            "timestamp": time.time(),
        }
        try:
            actions = self._actions(choice)
        except FormatError as error:
            error.messages[0]["extra"].update(details, answer=message.get("content"), calls=message.get("tool_calls"))
            raise
        return {**message, "extra": {"actions": actions, **details}}

    def format_observation_messages(
        self, message: dict[str, Any], outputs: list[dict[str, Any]], template_vars: dict[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        """Return what the model is told of its commands' results."""
        if self.text_mode:
            template = self.config.observation_template
            return list(format_observation_messages(outputs, observation_template=template))
        return list(super().format_observation_messages(message, outputs, template_vars))

    def _call_with_retries(self, messages: list[dict[str, Any]], expected: usage.Estimate) -> tuple[Any, usage.Usage]:
        worst = usage.worst_case_usd(self._endpoint, expected.cautious)
        for pause_s in (*self._backoff_s, None):
            reservation = self._reserve(worst)
            try:
                response = self._complete(messages)
            except Exception as error:  # noqa: BLE001  (providers raise anything; what it means is decided below)
                failure = understand(error)
                self._settle(reservation, worst if failure.billed else 0.0)
                if self._remaining_s() <= 0:  # the call was cut off by the attempt's end: that is not the endpoint's
                    raise TimeExceeded(exit_message("TimeExceeded")) from None
                if pause_s is None or not failure.retry or self._remaining_s() <= pause_s:
                    raise self._ended(failure) from None
                time.sleep(pause_s)
            except BaseException:
                self._settle(reservation, worst)  # interrupted after it was sent: assume that it is paid for
                raise
            else:
                used = usage.actual(self._endpoint, response, expected)
                self.answers += 1
                self.tokens_in += used.tokens_in
                self.tokens_out += used.tokens_out
                self._settle(reservation, used.cost_usd)
                return response, used
        raise AssertionError("the last try has no pause")

    def _complete(self, messages: list[dict[str, Any]]) -> Any:
        tools = {"tools": self._tools} if self._tools else {}
        timeout_s = min(self._endpoint.timeout_s, self._remaining_s())
        return complete(self._endpoint, messages, timeout_s=timeout_s, **tools)

    def _reserve(self, worst: float) -> str:
        if self._remaining_s() <= 0:
            raise TimeExceeded(exit_message("TimeExceeded"))
        if self.spent_usd + worst > self._cost_limit_usd:
            raise LimitsExceeded(exit_message("LimitsExceeded", "The next call could pass the attempt's cost limit."))
        try:
            return self._meter.reserve(worst)
        except BudgetExceeded as error:
            raise Ended(exit_message("BudgetExceeded", str(error))) from error
        except StopRequested as error:
            raise Ended(exit_message("Stopped", str(error))) from error

    def _settle(self, reservation: str, usd: float) -> None:
        self.spent_usd += usd
        self._meter.settle(reservation, usd)

    def _actions(self, choice: Any) -> list[dict[str, Any]]:
        template = self.config.format_error_template
        values = {"finish_reason": choice.finish_reason if choice else "", "text_mode": self.text_mode}
        if self.text_mode:
            text = (choice.message.content if choice else "") or ""
            found = parse_regex_actions(
                text, action_regex=_TEXT_ACTION, format_error_template=template, template_kwargs=values
            )
        else:
            calls = (choice.message.tool_calls if choice else None) or []
            found = parse_toolcall_actions(calls, format_error_template=template, template_kwargs=values)
        return list(found)

    def _ended(self, failure: CallFailure) -> Ended:
        reason = scrub(failure.reason, self._endpoint.api_key)[:1000]
        if failure.too_long:
            return Ended(exit_message("ContextExceeded", reason))
        if failure.about_request:
            return Ended(exit_message("RequestRefused", f"{self._endpoint.name} refused the request: {reason}"))
        return Ended(exit_message("ModelError", f"{self._endpoint.name} cannot be used: {reason}"))

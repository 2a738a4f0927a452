"""A model as a judge: how likely it thinks that a maintainer would merge a patch. One small signal, never a verdict.

The task and the patch are quoted, and may hold orders to the judge. What they can gain by it is bounded by the weight
of the signal within the bounds of a verdict that the tests gave (`sandbox.verdict`).
"""

import json
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from sandbox.agent import prompt, usage
from sandbox.agent.clean import clean
from sandbox.agent.completion import complete
from sandbox.agent.failures import understand
from sandbox.agent_types import Meter, ModelEndpoint
from sandbox.errors import BudgetExceeded, StopRequested
from sandbox.opinions import Opinion
from templates.escape import cut

_REASON = 300
_ANSWER = 20_000
"""Characters of an answer that are looked at."""
# The reason comes first, so that the number follows from it.
_RESPONSE_FORMAT = {
    "type": "json_schema",
    "json_schema": {
        "name": "opinion",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"reason": {"type": "string"}, "probability": {"type": "number"}},
            "required": ["reason", "probability"],
            "additionalProperties": False,
        },
    },
}
"""Providers that do not know it leave it out (LiteLLM's `drop_params`), so what comes back is checked."""


class _Answer(BaseModel):
    reason: str = Field(min_length=1)
    probability: float = Field(ge=0, le=1, allow_inf_nan=False, strict=True)


@dataclass(frozen=True)
class ModelJudge:
    """Asks one model, once for each patch, with money that is reserved before and settled after. Fulfils `Judge`."""

    endpoint: ModelEndpoint
    meter: Meter

    def __call__(self, task_text: str, patch: str) -> Opinion:
        """Return what the model thinks; whatever goes wrong is an opinion without a probability."""
        messages = prompt.judge_messages(task_text, patch)
        expected = usage.estimate(self.endpoint, messages, ())
        if expected.likely + self.endpoint.max_output_tokens > self.endpoint.context_tokens:
            return self._silent("task and patch do not fit its context")
        worst = usage.worst_case_usd(self.endpoint, expected.cautious)
        try:
            reservation = self.meter.reserve(worst)
        except (BudgetExceeded, StopRequested) as error:
            return self._silent(str(error))
        cost_usd = worst  # until it is known to be less
        try:
            response = complete(
                self.endpoint, messages, timeout_s=self.endpoint.timeout_s, response_format=_RESPONSE_FORMAT
            )
            cost_usd = usage.actual(self.endpoint, response, expected).cost_usd
        except Exception as error:  # noqa: BLE001  (providers raise anything, and no opinion is worth a task)
            failure = understand(error)
            cost_usd = worst if failure.billed else 0.0
            of_these_words = failure.too_long or failure.about_request
            return self._silent(failure.reason, cost_usd, endpoint_answered=None if of_these_words else False)
        finally:
            self.meter.settle(reservation, cost_usd)
        return self._opinion(response, cost_usd)

    def _opinion(self, response: Any, cost_usd: float) -> Opinion:
        answer = _read(response)
        if answer is None:
            why = "its answer is not the JSON object that it was asked for"
            return self._silent(why, cost_usd, endpoint_answered=True)
        return Opinion(
            self.endpoint.name, answer.probability, self._told(answer.reason), cost_usd, endpoint_answered=True
        )

    def _silent(self, why: str, cost_usd: float = 0.0, *, endpoint_answered: bool | None = None) -> Opinion:
        return Opinion(self.endpoint.name, None, self._told(why), cost_usd, endpoint_answered)

    def _told(self, words: str) -> str:
        return cut(" ".join(str(clean(words, self.endpoint.api_key)).split()), _REASON)


def _read(response: Any) -> _Answer | None:
    """Return the answer's JSON object, which some models put between fences or words; None where there is none."""
    choices = getattr(response, "choices", None) or []
    text = (choices[0].message.content if choices else "") or ""
    begin, end = text[:_ANSWER].find("{"), text[:_ANSWER].rfind("}")
    try:
        return _Answer.model_validate(json.loads(text[begin : end + 1]))
    except (ValueError, ValidationError, RecursionError):
        return None

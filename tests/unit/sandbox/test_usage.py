"""What a call cost, whatever the provider says of it."""

from types import SimpleNamespace
from typing import Any

import pytest

from sandbox.agent.usage import Estimate, actual
from sandbox.agent_types import ModelEndpoint

ENDPOINT = ModelEndpoint(
    name="m",
    litellm_id="openai/m",
    input_usd_per_mtok=1.0,
    output_usd_per_mtok=10.0,
    context_tokens=100_000,
    max_output_tokens=1_000,
)
ANSWER = "word " * 300


def response(**usage: Any) -> Any:
    message = SimpleNamespace(content=ANSWER, tool_calls=None)
    return SimpleNamespace(
        choices=[SimpleNamespace(message=message)], usage=SimpleNamespace(**usage) if usage else None
    )


@pytest.mark.parametrize(
    "usage",
    [
        {},
        {"prompt_tokens": 1_000},
        {"prompt_tokens": 1_000, "completion_tokens": None},
        {"prompt_tokens": 1_000, "completion_tokens": 0},
        {"prompt_tokens": 1_000, "completion_tokens": -500},
        {"prompt_tokens": -1_000, "completion_tokens": -500},
        {"prompt_tokens": "many", "completion_tokens": float("nan")},
    ],
)
def test_an_answer_is_paid_for_though_the_provider_does_not_count_it(usage: dict[str, Any]) -> None:
    used = actual(ENDPOINT, response(**usage), Estimate(likely=1_000, cautious=1_000))
    assert used.tokens_out >= 300
    assert used.cost_usd >= (1_000 + 300 * 10) / 1_000_000
    assert used.estimated


def test_the_providers_own_count_is_taken() -> None:
    used = actual(ENDPOINT, response(prompt_tokens=10, completion_tokens=20), Estimate(likely=1_000, cautious=1_000))
    assert (used.tokens_in, used.tokens_out, used.estimated) == (10, 20, False)
    assert used.cost_usd == pytest.approx(210 / 1_000_000)

"""Which program works with a model is said in the pool."""

from types import SimpleNamespace
from typing import Any

from routing.pool import ModelPool, ModelSpec
from sandbox.agent import CommandLineAgent, run_agent
from workers.attempts import agent_for


def test_mini_swe_agent_works_unless_the_pool_names_a_program() -> None:
    price = {"litellm_id": "openai/m", "input_usd_per_mtok": 1, "output_usd_per_mtok": 1}
    program = {"command": "codex exec - < {prompt}", "environment": {"URL": "{url}"}}
    pool = ModelPool(
        (
            ModelSpec.model_validate({"name": "plain", **price}),
            ModelSpec.model_validate({"name": "codex", **price, "agent": program}),
        )
    )
    run: Any = SimpleNamespace(runtime=SimpleNamespace(pool=pool))
    assert agent_for(run, "plain") is run_agent
    assert agent_for(run, "codex") == CommandLineAgent("codex exec - < {prompt}", {"URL": "{url}"})

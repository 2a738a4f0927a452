"""Which program works with a model is said in the pool."""

from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from routing.pool import ModelPool, ModelSpec
from sandbox.agent import CommandLineAgent, run_agent
from sandbox.agent_types import AgentTask
from sandbox.results import TestCommand
from workers import attempts
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


def test_an_agent_is_told_the_name_of_a_script_of_the_repository_and_not_its_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    agent = MagicMock()
    monkeypatch.setattr(attempts, "endpoint", MagicMock())
    monkeypatch.setattr(attempts, "agent_for", lambda *_: agent)
    work: Any = MagicMock(test_command=TestCommand("node --test tests. New orders", "node", "package.json", "npm test"))
    attempts._work(MagicMock(), work, MagicMock(), "")
    task: AgentTask = agent.call_args.args[0]
    assert task.test_command == "npm test"

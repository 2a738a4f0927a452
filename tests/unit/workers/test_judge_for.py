"""Whom a repository's code is shown to for an opinion."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from routing.pool import ModelPool, ModelSpec
from store.repo_config import parse_repository_config
from store.tables import Attempt
from tests.support.rows import settings
from workers.judging import judge_for


def model(name: str, litellm_id: str = "", **more: Any) -> ModelSpec:
    return ModelSpec(
        name=name,
        litellm_id=litellm_id or f"openai/{name}",
        api_base="http://127.0.0.1:1/v1",
        input_usd_per_mtok=1,
        output_usd_per_mtok=1,
        **more,
    )


POOL = ModelPool(
    (model("worker"), model("wise"), model("worker-long", "openai/worker"), model("keyless", api_key_env="NO_SUCH_KEY"))
)


def asked(judge: str, config: str = "", worker: str = "worker", resting: tuple[str, ...] = ()) -> bool:
    """Whether `judge` would be asked about a patch of `worker`."""
    runtime = SimpleNamespace(
        pool=POOL,
        settings=settings(judge_model=judge),
        database=SimpleNamespace(reading=nullcontext),
        breakers=SimpleNamespace(open=lambda _session: resting),
    )
    run: Any = SimpleNamespace(runtime=runtime)
    work: Any = SimpleNamespace(source=SimpleNamespace(config=parse_repository_config(config)))
    return judge_for(run, work, Attempt(id=1, task_id=1, decision_id=1, number=1, model=worker)) is not None


def test_nobody_is_asked_unless_the_operator_names_a_judge() -> None:
    assert not asked("")
    assert asked("wise")


@pytest.mark.parametrize("worker", ["worker", "worker-long"])
def test_a_model_is_not_shown_its_own_patch_whatever_its_entry_is_called(worker: str) -> None:
    assert not asked("worker", worker=worker)


@pytest.mark.parametrize(
    "config",
    ["judge: off", "models: {deny: [wise]}", "models: {allow: [worker]}", "models: {allow: [wise], deny: [wise]}"],
)
def test_a_repository_keeps_its_code_from_a_model(config: str) -> None:
    assert not asked("wise", config)


@pytest.mark.parametrize("config", ["judge: on", "models: {deny: [worker]}", "models: {allow: [worker, wise]}"])
def test_a_repository_that_lets_a_model_work_lets_it_judge(config: str) -> None:
    assert asked("wise", config)


def test_a_judge_whose_endpoint_fails_is_not_asked() -> None:
    assert not asked("wise", resting=("wise",))
    assert asked("wise", resting=("worker",))


def test_without_its_key_a_judge_is_not_asked() -> None:
    assert not asked("keyless")


def test_a_worker_that_left_the_pool_meanwhile_is_judged_all_the_same() -> None:
    assert asked("wise", worker="gone")

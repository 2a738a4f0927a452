"""The scripted models, worked by the real mini-swe-agent through LiteLLM on a checkout of a bug."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bot.demo.scripted import ScriptedEndpoint
from tests.support.bugs import SCRIPTED_KEY, MakeBug, check_out, failed, names, put_hidden_tests, run_tests


@pytest.fixture
def agent_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """mini-swe-agent reads and writes a configuration folder when it is imported: a private one."""
    monkeypatch.setenv("MSWEA_SILENT_STARTUP", "1")
    monkeypatch.setenv("MSWEA_GLOBAL_CONFIG_DIR", str(tmp_path / "mini"))
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    monkeypatch.setenv("MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT", "1")
    return tmp_path


def work(endpoint: ScriptedEndpoint, model: str, task: str, folder: Path, *, key: str = SCRIPTED_KEY) -> dict[str, Any]:
    """Let mini-swe-agent work on `task` in `folder` and return how it ended, with `messages`."""
    from minisweagent.agents.default import DefaultAgent
    from minisweagent.environments.local import LocalEnvironment
    from minisweagent.models.litellm_model import LitellmModel

    agent = DefaultAgent(
        LitellmModel(
            model_name=f"openai/{model}",
            model_kwargs={"api_base": endpoint.api_base, "api_key": key, "max_retries": 0},
            cost_tracking="ignore_errors",
        ),
        LocalEnvironment(cwd=str(folder), timeout=60, env={"PYTHONPATH": f"{folder / 'src'}:{folder}"}),
        system_template="You solve issues.",
        instance_template="Please solve this:\n<task>\n{{task}}\n</task>",
        step_limit=12,
        cost_limit=0,
    )
    ended = agent.run(task)
    return {**ended, "messages": agent.messages}


def changed_files(folder: Path) -> set[str]:
    command = ["git", "status", "--porcelain", "-uall"]
    status = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    paths = {line[3:] for line in status.stdout.splitlines()}
    return {path for path in paths if "__pycache__" not in path}


@pytest.mark.parametrize("name", ["cachetools-shallow-copy", "sqlparse-optimizer-hints", "xmltodict-none-attribute"])
def test_the_large_model_fixes_a_bug_and_adds_a_test(
    name: str, make_bug: MakeBug, scripted_endpoint: ScriptedEndpoint, agent_home: Path
) -> None:
    repository = make_bug(name)
    folder = check_out(repository, agent_home / "tree")

    ended = work(scripted_endpoint, "scripted-large", f"{repository.bug.title}\n\n{repository.bug.issue}", folder)

    assert ended["exit_status"] == "Submitted"
    assert changed_files(folder) == {*repository.bug.fix, repository.bug.regression_test.path}
    assert not failed(run_tests(folder, repository.bug.regression_test.path))
    put_hidden_tests(repository, folder)
    assert not failed(run_tests(folder, *repository.bug.hidden.ids))


def test_the_small_model_hands_in_a_change_that_fixes_nothing(
    make_bug: MakeBug, scripted_endpoint: ScriptedEndpoint, agent_home: Path
) -> None:
    repository = make_bug("sqlparse-optimizer-hints")
    folder = check_out(repository, agent_home / "tree")

    ended = work(scripted_endpoint, "scripted-small", repository.bug.title, folder)

    assert ended["exit_status"] == "Submitted"
    assert changed_files(folder) == set(repository.bug.fix)
    put_hidden_tests(repository, folder)
    assert failed(run_tests(folder, *repository.bug.hidden.ids)) == names(repository.bug.hidden.ids)


def test_the_second_fix_of_a_file_goes_on_top_of_the_first(
    make_bug: MakeBug, scripted_endpoint: ScriptedEndpoint, agent_home: Path
) -> None:
    first, second = make_bug("boltons-atomicsaver-pathlib"), make_bug("boltons-find-files-pathlib")
    folder = check_out(first, agent_home / "tree", first.fix_patch)

    work(scripted_endpoint, "scripted-large", second.bug.title, folder)

    put_hidden_tests(second, folder)
    assert not failed(run_tests(folder, *first.bug.hidden.ids, *second.bug.hidden.ids))


def test_every_answer_says_that_it_is_scripted_and_counts_its_tokens(
    make_bug: MakeBug, scripted_endpoint: ScriptedEndpoint, agent_home: Path
) -> None:
    repository = make_bug("xmltodict-none-attribute")
    folder = check_out(repository, agent_home / "tree")

    messages = work(scripted_endpoint, "scripted-large", repository.bug.title, folder)["messages"]

    answers = [message for message in messages if message["role"] == "assistant"]
    assert all("a scripted model" in answer["content"] for answer in answers)
    usages = [answer["extra"]["response"]["usage"] for answer in answers]
    assert [usage["prompt_tokens"] for usage in usages] == sorted(usage["prompt_tokens"] for usage in usages)
    assert all(usage["completion_tokens"] > 0 for usage in usages)


def test_a_model_that_submits_nothing_changes_nothing(
    make_bug: MakeBug, scripted_endpoint: ScriptedEndpoint, agent_home: Path
) -> None:
    repository = make_bug("boltons-atomicsaver-pathlib")
    folder = check_out(repository, agent_home / "tree")

    ended = work(scripted_endpoint, "scripted-empty", repository.bug.title, folder)

    assert ended["exit_status"] == "Submitted"
    assert not changed_files(folder)


@pytest.mark.parametrize(
    ("model", "ending"), [("scripted-loop", "LimitsExceeded"), ("scripted-garbage", "RepeatedFormatError")]
)
def test_a_model_that_does_not_end_is_ended(
    model: str, ending: str, scripted_endpoint: ScriptedEndpoint, agent_home: Path
) -> None:
    assert work(scripted_endpoint, model, "Anything", agent_home)["exit_status"] == ending


def test_a_dead_model_and_a_wrong_key_are_errors(scripted_endpoint: ScriptedEndpoint, agent_home: Path) -> None:
    import litellm

    with pytest.raises(litellm.exceptions.InternalServerError):
        work(scripted_endpoint, "scripted-dead", "Anything", agent_home)
    with pytest.raises(litellm.exceptions.AuthenticationError):
        work(scripted_endpoint, "scripted-large", "Anything", agent_home, key="wrong")
    assert os.environ["MSWEA_SILENT_STARTUP"] == "1"

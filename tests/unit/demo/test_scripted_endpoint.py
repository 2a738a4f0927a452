"""The scripted models' endpoint, asked over HTTP."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from bot.demo.bugs import find_bug
from bot.demo.materialise import BugRepository
from bot.demo.scripted import ScriptedEndpoint, write_models_file
from bot.demo.scripted.server import Call

PATCH = "--- a/boltons/fileutils.py\n+++ b/boltons/fileutils.py\n@@ -1,2 +1,2 @@\n same\n-old\n+new\n"


def repository(name: str, folder: Path) -> BugRepository:
    return BugRepository(find_bug(name), folder, "0" * 40, PATCH, {})


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[ScriptedEndpoint]:
    known = [repository(name, tmp_path) for name in ("boltons-atomicsaver-pathlib", "boltons-find-files-pathlib")]
    with ScriptedEndpoint(known, api_key="key") as running:
        yield running


def ask(endpoint: ScriptedEndpoint, model: str, *texts: str, key: str = "key", **more: Any) -> httpx.Response:
    """Send texts as user and assistant messages by turns."""
    messages = [{"role": ("user", "assistant")[number % 2], "content": text} for number, text in enumerate(texts)]
    body = {"model": model, "messages": messages, **more}
    return httpx.post(
        f"{endpoint.api_base}/chat/completions", json=body, headers={"Authorization": f"Bearer {key}"}, timeout=10
    )


def command(response: httpx.Response) -> str:
    call = response.json()["choices"][0]["message"]["tool_calls"][0]["function"]
    assert call["name"] == "bash"
    return str(yaml.safe_load(call["arguments"])["command"])


def test_the_bug_is_recognised_by_its_title_however_it_is_quoted(endpoint: ScriptedEndpoint) -> None:
    ask(endpoint, "scripted-large", "> fileutils.iter\\_find\\_files does not\n> accept a `pathlib.Path`")
    assert endpoint.calls == [Call("scripted-large", "boltons-find-files-pathlib", 0)]


def test_the_bug_is_recognised_by_the_name_of_a_failing_test(endpoint: ScriptedEndpoint) -> None:
    ask(endpoint, "scripted-large", "FAILED tests/test_fileutils.py::test_atomicsaver_pathlike - TypeError")
    assert endpoint.calls[0].bug == "boltons-atomicsaver-pathlib"


def test_what_commands_print_later_does_not_change_the_bug(endpoint: ScriptedEndpoint) -> None:
    first, second = (find_bug(f"boltons-{name}-pathlib").title for name in ("find-files", "atomicsaver"))
    ask(endpoint, "scripted-large", first, "answer", second)
    assert endpoint.calls == [Call("scripted-large", "boltons-find-files-pathlib", 1)]


def test_a_prompt_about_no_known_bug_ends_without_a_change(endpoint: ScriptedEndpoint) -> None:
    assert "COMPLETE_TASK" in command(ask(endpoint, "scripted-large", "Something else", "answer", "output"))


def test_the_steps_follow_the_conversation(endpoint: ScriptedEndpoint) -> None:
    title = find_bug("boltons-atomicsaver-pathlib").title
    turns = [title]
    commands: list[str] = []
    while not commands or "COMPLETE_TASK" not in commands[-1]:
        commands.append(command(ask(endpoint, "scripted-large", *turns)))
        turns += ["answer", "output"]
    assert len(commands) == 6
    assert "'same\\nold\\n', 'same\\nnew\\n'" in commands[3]


def test_garbage_has_no_tool_call(endpoint: ScriptedEndpoint) -> None:
    message = ask(endpoint, "scripted-garbage", "x").json()["choices"][0]["message"]
    assert "tool_calls" not in message


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        (lambda end: ask(end, "scripted-large", "x", key="other"), 401, "API key"),
        (lambda end: ask(end, "scripted-larg", "x"), 404, "no scripted model named 'scripted-larg'"),
        (lambda end: ask(end, "scripted-dead", "x"), 500, "dead on purpose"),
        (lambda end: ask(end, "scripted-large", "x", stream=True), 400, "do not stream"),
        (lambda end: ask(end, "scripted-large", messages=[1]), 400, "list of objects"),
    ],
)
def test_a_refusal_says_why(endpoint: ScriptedEndpoint, answer: Any, status: int, words: str) -> None:
    response = answer(endpoint)
    assert response.status_code == status
    assert words in response.json()["error"]["message"]
    assert response.json()["error"]["message"].startswith("scripted:")


def test_a_body_that_is_not_json_is_refused(endpoint: ScriptedEndpoint) -> None:
    url, headers = f"{endpoint.api_base}/chat/completions", {"Authorization": "Bearer key"}
    assert httpx.post(url, content=b"{", headers=headers).status_code == 400
    assert httpx.post(url, content=b"[]", headers=headers).status_code == 400


def test_the_models_are_listed(endpoint: ScriptedEndpoint) -> None:
    listed = httpx.get(f"{endpoint.api_base}/models", headers={"Authorization": "Bearer key"}).json()["data"]
    assert {"scripted-small", "scripted-large", "scripted-loop"} <= {model["id"] for model in listed}
    assert {model["owned_by"] for model in listed} == {"scripted"}


def test_the_pool_file_names_prices_and_the_keys_place_but_no_key(tmp_path: Path) -> None:
    path = tmp_path / "models.yaml"
    write_models_file(path, api_base="http://127.0.0.1:1/v1", api_key_env="SCRIPTED_KEY")
    models = yaml.safe_load(path.read_text())["models"]
    assert [model["name"] for model in models] == ["scripted-small", "scripted-medium", "scripted-large"]
    assert all(model["scripted"] and model["input_usd_per_mtok"] > 0 for model in models)
    assert all("api_key" not in model and model["api_key_env"] == "SCRIPTED_KEY" for model in models)


def test_the_pool_file_refuses_an_unknown_model(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="scripted-huge"):
        write_models_file(tmp_path / "m.yaml", api_base="x", api_key_env="K", only=["scripted-huge"])

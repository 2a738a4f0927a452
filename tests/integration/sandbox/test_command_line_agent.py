"""An agent that is a program of the image: it has no network, and a line to its one model, for reserved money."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.agent import CommandLineAgent, Step
from sandbox.agent_types import AgentLimits, AgentTask
from sandbox.errors import StopRequested
from sandbox.types import Backend, Sandbox, SandboxSpec
from tests.support.backends import LABELS, backend
from tests.support.meters import CountingMeter
from tests.support.model_server import Say, model_server
from tests.support.small_project import small_project

__all__ = ["backend"]

TASK = AgentTask(title="mean() is wrong", text="mean([1, 2, 3]) gives 3.0")
KEY = "sk-canary-0123456789abcdef0123"
# A whole command line agent: it does what its model says, and goes on whatever happens to its calls.
PROGRAM = """
import json, os, subprocess, sys, urllib.error, urllib.request
def ask(path, body, method="POST"):
    data = json.dumps(body).encode() if method == "POST" else None
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(os.environ["MODEL_URL"] + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)
messages = [{"role": "user", "content": open(sys.argv[1]).read()}]
others = [ask("/v1/files", {}, "GET")[0], ask("/v1/embeddings", {})[0], ask("//169.254.169.254/latest", {})[0]]
messages.append({"role": "user", "content": "others: %s" % others})
while True:
    status, answer = ask("/v1/chat/completions", {"model": "another-model", "max_tokens": 99999, "messages": messages})
    if status != 200:
        continue
    command = json.loads(answer["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"])["command"]
    if command == "end":
        break
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    messages.append({"role": "user", "content": done.stdout + done.stderr})
print("The work is done.")
"""


@pytest.fixture
def box(backend: Backend, tmp_path: Path) -> Iterator[Sandbox]:
    sandbox = backend.open(SandboxSpec(backend.ensure_base(), LABELS))
    try:
        sandbox.put_tree(small_project(tmp_path).archive(tmp_path / "tree.tar"))
        sandbox.put_file("/tmp/program.py", PROGRAM.encode())
        yield sandbox
    finally:
        sandbox.close()


AGENT = CommandLineAgent("python3 /tmp/program.py {prompt}", {"MODEL_URL": "{url}"})


def test_a_program_works_with_its_model_and_reaches_nothing_else(box: Sandbox) -> None:
    script = [
        Say("cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'"),
        Say("sed -i 's/(len(numbers) - 1)/len(numbers)/' stats.py"),
        Say("end", text="Fixed."),
    ]
    meter, steps = CountingMeter(), list[Step]()
    with model_server(script) as server:
        run = AGENT(TASK, server.endpoint(), box, meter, AgentLimits(), on_step=steps.append)
        requests = list(server.requests)
    assert (run.exit_status, run.steps, run.error) == ("Submitted", 3, "")
    assert "+    return total(numbers) / len(numbers)" in run.patch

    # The model and the length of its answers are the pool's, and the key is the host's.
    assert {(r["model"], r["max_tokens"], r["_authorization"]) for r in requests} == {
        ("scripted", 500, f"Bearer {KEY}")
    }
    told = [message["content"] for message in requests[-1]["messages"]]
    assert "mean([1, 2, 3]) gives 3.0" in told[0]
    assert told[1] == "others: [403, 403, 403]"
    assert KEY not in str(told)

    assert run.cost_usd == pytest.approx(3 * (1000 * 1.0 + 100 * 10.0) / 1e6)
    assert meter.spent_usd == pytest.approx(run.cost_usd)
    assert meter.open == []
    assert [step.number for step in steps] == [1, 2, 3]
    assert steps[-1].trajectory()["messages"][-1]["content"] == "Fixed."
    assert run.trajectory["messages"][-1]["content"].strip() == "The work is done."
    # The sandbox goes on working: nothing of the program is left.
    assert box.execute("pgrep -c python3", timeout_s=10).output.strip() in ("0", "1")


def test_a_program_that_would_go_on_without_end_ends_with_the_money_or_a_word(box: Sandbox) -> None:
    with model_server([Say("true")]) as server:
        meter = CountingMeter(cap_usd=0.02)
        broke = AGENT(TASK, server.endpoint(), box, meter, AgentLimits(wall_s=60))
        assert (broke.exit_status, broke.error) == ("BudgetExceeded", "The task's budget is used up.")
        assert 0 < meter.spent_usd <= 0.02
        assert meter.open == []

        def stop(step: Step) -> None:
            if step.number == 2:
                raise StopRequested("A person asked to stop.")

        stopped = AGENT(TASK, server.endpoint(), box, CountingMeter(), AgentLimits(wall_s=60), on_step=stop)
        assert (stopped.exit_status, stopped.steps) == ("Stopped", 2)
        limited = AGENT(TASK, server.endpoint(), box, CountingMeter(), AgentLimits(steps=3, wall_s=60))
        assert (limited.exit_status, limited.steps) == ("LimitsExceeded", 3)


def test_a_program_that_hangs_or_is_missing_ends_with_a_status(box: Sandbox) -> None:
    with model_server([Say("end")]) as server:
        endpoint, meter = server.endpoint(), CountingMeter()
        hung = CommandLineAgent("sleep 60")(TASK, endpoint, box, meter, AgentLimits(wall_s=1.5))
        assert hung.exit_status == "TimeExceeded"
        missing = CommandLineAgent("claude -p hello")(TASK, endpoint, box, meter, AgentLimits(wall_s=20))
        assert missing.exit_status == "ProgramError", "the image lacks it, and that is not the model's"
        assert "claude: command not found" in missing.error
    assert meter.spent_usd == 0

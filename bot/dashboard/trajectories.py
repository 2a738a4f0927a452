"""A trajectory (mini-swe-agent's format) as steps that a person can read: thought, commands, what they printed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from templates.escape import cut_middle

LONGEST_OUTPUT = 6_000
LONGEST_THOUGHT = 4_000
MOST_STEPS = 300


@dataclass(frozen=True)
class Command:
    text: str
    output: str
    code: int | None
    """Exit code; None where it was not run."""
    seconds: float | None


@dataclass(frozen=True)
class Step:
    number: int
    thought: str
    commands: tuple[Command, ...]
    cost_usd: float | None
    tokens_in: int | None
    tokens_out: int | None


@dataclass(frozen=True)
class Steps:
    steps: tuple[Step, ...]
    left_out: int
    """Steps beyond the first `MOST_STEPS`."""
    system: str
    """The instructions, with which everything began."""
    task: str


def read_steps(trajectory: Mapping[str, Any], after: int = 0) -> Steps:
    """Return the steps of a trajectory after the first `after`; what does not look like one gives none."""
    messages = [one for one in _list(trajectory.get("messages")) if isinstance(one, dict)]
    answers = _observations(messages)
    thoughts = [one for one in messages if one.get("role") == "assistant"]
    opening = [_content(one) for one in messages if one.get("role") in ("system", "user")][:2]
    system, task = (*opening, "", "")[:2]
    shown = list(enumerate(thoughts, start=1))[after : after + MOST_STEPS]
    steps = tuple(_step(number, message, answers) for number, message in shown)
    left = max(0, len(thoughts) - after - MOST_STEPS)
    return Steps(steps, left, cut_middle(system, LONGEST_OUTPUT), cut_middle(task, LONGEST_OUTPUT))


def _observations(messages: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    return {str(one["tool_call_id"]): one for one in messages if one.get("tool_call_id")}


def _step(number: int, message: Mapping[str, Any], answers: Mapping[str, Mapping[str, Any]]) -> Step:
    extra = _dict(message.get("extra"))
    usage = _dict(_dict(extra.get("response")).get("usage"))
    cost = extra.get("cost")
    return Step(
        number=number,
        thought=cut_middle(_content(message), LONGEST_THOUGHT),
        commands=tuple(
            _command(action, answers.get(str(action.get("tool_call_id")), {}))
            for action in _list(extra.get("actions"))
            if isinstance(action, dict)
        ),
        cost_usd=float(cost) if isinstance(cost, int | float) else None,
        tokens_in=_int(usage.get("in")),
        tokens_out=_int(usage.get("out")),
    )


def _command(action: Mapping[str, Any], answer: Mapping[str, Any]) -> Command:
    extra = _dict(answer.get("extra"))
    output = extra.get("raw_output")
    seconds = extra.get("duration_s")
    return Command(
        text=cut_middle(str(action.get("command", "")), LONGEST_OUTPUT),
        output=cut_middle(output if isinstance(output, str) else _content(answer), LONGEST_OUTPUT),
        code=_int(extra.get("returncode")),
        seconds=float(seconds) if isinstance(seconds, int | float) else None,
    )


def _content(message: Mapping[str, Any]) -> str:
    """Return a message's text; providers give a string or a list of parts."""
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _int(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

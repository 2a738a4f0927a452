"""What a model is told first: our instructions, and the task as data that cannot pass for them."""

import re

from sandbox.agent_types import AgentLimits, AgentTask
from sandbox.types import WORKSPACE
from templates import render
from templates.escape import cut, cut_middle, plain

# The one tag around untrusted text. Whatever could open or close it inside that text loses its angle bracket.
_TAG = re.compile(r"[<\uff1c\u2039](?=\s*(?:/\s*)?untrusted)", re.IGNORECASE)

_TITLE, _TEXT, _HINT, _NOTES, _PREVIOUS, _PATCH = 300, 30_000, 3_000, 6_000, 8_000, 40_000
_COMMAND = 1_000
"""A configured one may be as long. What is found in a repository's files is told by a short name of ours."""


def quote(text: str, limit: int) -> str:
    """Return untrusted text, cut to about `limit` characters, that cannot leave an `<untrusted>` element."""
    return _TAG.sub("&lt;", cut_middle(plain(text).strip(), limit))


def system_prompt(*, text_mode: bool) -> str:
    """Return the system message. In text mode commands come as fenced blocks instead of tool calls."""
    return render("prompts/system.md.j2", workspace=WORKSPACE, text_mode=text_mode)


def instance_prompt(task: AgentTask, limits: AgentLimits) -> str:
    """Return the first user message: the task's parts, quoted, and the way of working."""
    return render(
        "prompts/instance.md.j2",
        workspace=WORKSPACE,
        title=_line(task.title, _TITLE),
        text=quote(task.text, _TEXT),
        hint=quote(task.hint, _HINT),
        notes=quote(task.notes, _NOTES),
        previous=quote(task.previous, _PREVIOUS),
        test_command=_line(task.test_command, _COMMAND),
        steps=limits.steps,
        command_s=round(limits.command_s),
    )


def _line(text: str, limit: int) -> str:
    return cut(_TAG.sub("&lt;", " ".join(plain(text).split())), limit)


def judge_messages(task_text: str, patch: str) -> list[dict[str, str]]:
    """Return the messages for a model that judges a patch: our instructions, then task and patch, quoted."""
    question = render("prompts/judge.md.j2", task=quote(task_text, _TEXT), patch=quote(patch, _PATCH))
    return [{"role": "system", "content": render("prompts/judge_system.md.j2")}, {"role": "user", "content": question}]

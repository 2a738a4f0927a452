"""The agent's first two messages: our instructions, and the task as data that cannot pass for them."""

import re

from sandbox.agent_types import AgentLimits, AgentTask
from sandbox.types import WORKSPACE
from templates import render
from templates.escape import cut, cut_middle, plain

# The one tag around untrusted text. Whatever could open or close it inside that text loses its angle bracket.
_TAG = re.compile(r"[<\uff1c\u2039](?=\s*/?\s*untrusted)", re.IGNORECASE)

_TITLE, _TEXT, _HINT, _NOTES, _PREVIOUS = 300, 30_000, 3_000, 6_000, 8_000


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
        title=cut(" ".join(quote(task.title, _TITLE).split()), _TITLE),
        text=quote(task.text, _TEXT),
        hint=quote(task.hint, _HINT),
        notes=quote(task.notes, _NOTES),
        previous=quote(task.previous, _PREVIOUS),
        test_command=" ".join(plain(task.test_command).split()),
        steps=limits.steps,
        command_s=round(limits.command_s),
    )

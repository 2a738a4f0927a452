"""Code in a task's text that says what should happen, run as evidence.

Two kinds count: doctest sessions (`>>> ` with the expected output) and fenced Python blocks that hold an `assert`.
People paste wrong output as often as right output, so only one thing is evidence: an example that fails without the
patch and passes with it.
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from markdown_it import MarkdownIt

from sandbox.types import Sandbox

_PYTHON = frozenset({"", "python", "py", "python3", "pycon", "pytb", "doctest"})
_PROMPT = re.compile(r"^[ \t]*>>> ", re.MULTILINE)
_ASSERT = re.compile(r"^[ \t]*assert\b", re.MULTILINE)
_MAX_EXAMPLES, _MAX_CHARS, _MAX_TEXT = 10, 5_000, 60_000

_RUN_DOCTEST = (
    "import doctest, sys; "
    "r = doctest.testfile(sys.argv[1], module_relative=False, "
    "optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS); "
    "sys.exit(0 if r.attempted and not r.failed else 1)"
)


@dataclass(frozen=True)
class Example:
    """One example of a task's text."""

    name: str
    kind: Literal["doctest", "assert"]
    code: str


def extract(text: str) -> list[Example]:
    """Return the examples in an issue's text, in their order, at most ten."""
    lines = text[:_MAX_TEXT].replace("\r\n", "\n").split("\n")
    found: list[tuple[Literal["doctest", "assert"], str]] = []
    for token in MarkdownIt("commonmark").parse("\n".join(lines)):
        if token.type != "fence" or token.map is None:
            continue
        lines[token.map[0] : token.map[1]] = [""] * (token.map[1] - token.map[0])
        language = (token.info.split() or [""])[0].lower()
        if language not in _PYTHON or len(token.content) > _MAX_CHARS:
            continue
        if _PROMPT.search(token.content):
            if _has_expectation(token.content):
                found.append(("doctest", token.content))
        elif _ASSERT.search(token.content):
            found.append(("assert", token.content))
    found += [("doctest", session) for session in _bare_sessions(lines)]
    return [
        Example(f"example {number} of the task's text", kind, code)
        for number, (kind, code) in enumerate(found[:_MAX_EXAMPLES], 1)
    ]


def run_examples(sandbox: Sandbox, examples: Sequence[Example], *, timeout_s: float) -> dict[str, bool]:
    """Run each example in the sandbox, in a process of its own, and return by name whether it held.

    Raises:
        SandboxError: the sandbox is gone.
    """
    results = {}
    for number, example in enumerate(examples):
        path = f"/tmp/acrouter-example-{number}.{'txt' if example.kind == 'doctest' else 'py'}"  # noqa: S108
        sandbox.put_file(path, _dedented(example).encode("utf-8", "replace"))
        run = f"-c {shlex.quote(_RUN_DOCTEST)} {path}" if example.kind == "doctest" else path
        # PYTHONPATH: a script's own folder would else stand in front instead of the tree.
        result = sandbox.execute(
            f'PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$PWD:$PWD/src" python3 {run}', timeout_s=timeout_s
        )
        results[example.name] = result.exit_code == 0 and not result.timed_out
    return results


def _bare_sessions(lines: Sequence[str]) -> list[str]:
    """Return the doctest sessions that stand outside fences: from a prompt to the next blank line."""
    sessions: list[list[str]] = []
    inside = False
    for line in lines:
        if not line.strip():
            inside = False
        elif inside:
            sessions[-1].append(line)
        elif _PROMPT.match(line):
            inside = True
            sessions.append([line])
    joined = ("\n".join(session) + "\n" for session in sessions)
    return [session for session in joined if len(session) <= _MAX_CHARS and _has_expectation(session)]


def _has_expectation(session: str) -> bool:
    """Return whether a session shows some output: one without expects nothing."""
    lines = [line.strip() for line in session.splitlines()]
    return any(line and not line.startswith((">>>", "...")) for line in lines)


def _dedented(example: Example) -> str:
    if example.kind == "assert":
        return example.code
    return "\n".join(line.rstrip() for line in example.code.splitlines()) + "\n"

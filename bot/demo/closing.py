"""The demo's last words: commands that work as they are typed there."""

import shlex
import shutil
import sys
from pathlib import Path

from templates import render


def closing_words(*, scripted: bool, keep: bool) -> str:
    """Return what to do next; who keeps the demo up is not told to."""
    return render("demo/closing.txt.j2", acrouter=command_as_typed(sys.argv[0]), scripted=scripted, keep=keep)


def command_as_typed(called: str) -> str:
    """Return how the shell that started this process, as `called`, finds acrouter again."""
    if Path(called).name != "acrouter":
        return f"{shlex.quote(sys.executable)} -m bot"
    found = shutil.which("acrouter")
    return "acrouter" if found and Path(found).resolve() == Path(called).resolve() else shlex.quote(called)

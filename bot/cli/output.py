"""Where the commands print their tables."""

import os

from rich.console import Console

_FILE_WIDTH = 160


def wide_console(*, stderr: bool = False) -> Console:
    """Return a console as wide as its terminal, or as COLUMNS says.

    Else a file or a pipe gets room: at 80 columns names and sentences would be cut or broken for whoever searches them.
    """
    console = Console(stderr=stderr)
    if console.is_terminal or "COLUMNS" in os.environ:
        return console
    return Console(stderr=stderr, width=_FILE_WIDTH)

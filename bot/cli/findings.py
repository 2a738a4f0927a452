"""Shows what checks found, and what to do."""

from collections.abc import Sequence

import typer
from rich.markup import escape
from rich.table import Table

from bot.cli.output import wide_console
from bot.github_app.findings import Finding

_STYLES = {"ok": "green", "warning": "yellow", "wrong": "bold red"}


def show(findings: Sequence[Finding]) -> None:
    """Print a table.

    Raises:
        typer.Exit: with 1, where something is wrong.
    """
    table = Table("", "what", show_lines=False)
    for column in ("found", "what to do"):  # names of settings are to be copied: they may be broken, never cut
        table.add_column(column, overflow="fold")
    for finding in findings:
        table.add_row(
            f"[{_STYLES[finding.level]}]{finding.level}[/]",
            escape(finding.what),
            escape(finding.found),
            escape(finding.advice),
        )
    wide_console().print(table)
    if any(finding.level == "wrong" for finding in findings):
        raise typer.Exit(1)

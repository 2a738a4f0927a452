"""`acrouter doctor`: checks every need and says for each what to do."""

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

_STYLES = {"ok": "green", "warning": "yellow", "wrong": "bold red"}


def doctor(
    offline: bool = typer.Option(False, "--offline", help="Ask neither GitHub nor the models' endpoints."),
) -> None:
    """Check the database, the broker, the sandbox, the models, the GitHub App and the clock."""
    from bot.diagnosis import diagnose

    table = Table("", "what", show_lines=False)
    for column in ("found", "what to do"):  # names of settings are to be copied: they may be broken, never cut
        table.add_column(column, overflow="fold")
    findings = diagnose(offline=offline)
    for finding in findings:
        table.add_row(
            f"[{_STYLES[finding.level]}]{finding.level}[/]",
            escape(finding.what),
            escape(finding.found),
            escape(finding.advice),
        )
    Console().print(table)
    if any(finding.level == "wrong" for finding in findings):
        raise typer.Exit(1)

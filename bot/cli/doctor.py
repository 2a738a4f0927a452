"""`acrouter doctor`: checks every need and says for each what to do."""

import typer
from rich.console import Console


def doctor(
    offline: bool = typer.Option(False, "--offline", help="Ask neither GitHub nor the models' endpoints."),
) -> None:
    """Check the database, the broker, the sandbox, the models, the GitHub App and the clock."""
    from bot.cli.findings import show
    from bot.diagnosis import diagnose

    # A terminal alone shows it. Before the first task there is no image, and making one is part of the check.
    with Console(stderr=True).status("checking; the sandbox's first image takes minutes"):
        found = diagnose(offline=offline)
    show(found)

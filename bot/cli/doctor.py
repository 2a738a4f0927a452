"""`acrouter doctor`: checks every need and says for each what to do."""

import typer


def doctor(
    offline: bool = typer.Option(False, "--offline", help="Ask neither GitHub nor the models' endpoints."),
) -> None:
    """Check the database, the broker, the sandbox, the models, the GitHub App and the clock."""
    from bot.cli.findings import show
    from bot.diagnosis import diagnose

    show(diagnose(offline=offline))

"""`acrouter`: one command for each thing that people do with it."""

import io
import sys
from importlib import metadata
from typing import NoReturn

import typer
from rich.console import Console

from bot.cli import bench, calibration, doctor, github_app, look, route, serve, solve, token, train
from store.errors import AcrouterError

app = typer.Typer(
    name="acrouter",
    help="Gives each coding task to the model likeliest to solve it for the money.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.command()(serve.up)
app.command()(serve.worker)
app.command()(serve.beat)
app.command()(serve.migrate)
app.command()(solve.solve)
app.command()(doctor.doctor)
app.command()(bench.bench)
app.command()(route.route)
app.command()(route.replay)
app.command()(calibration.calibration)
app.add_typer(train.app, name="train")
for look_at in (look.stats, look.tasks, look.task, look.models, look.tail, look.dashboard):
    app.command()(look_at)
app.add_typer(token.app, name="token")
app.add_typer(github_app.app, name="github-app")


@app.command()
def demo(
    model: str = typer.Option("", help="Use this paid model (LiteLLM's name) instead of the scripted ones."),
    keep: bool = typer.Option(False, help="Leave the dashboard and the local GitHub up at the end, to look at them."),
) -> None:
    """Do the whole job on a real bug, against a local GitHub, with scripted models."""
    from bot.demo.command import run_demo

    raise typer.Exit(run_demo(model=model, keep=keep))


@app.command(name="version")
def show_version() -> None:
    """Print the version."""
    try:
        typer.echo(metadata.version("acrouter"))
    except metadata.PackageNotFoundError:
        typer.echo("0.0.0 (not installed)")


def _show_and_exit(asked: bool) -> None:
    if asked:
        show_version()
        raise typer.Exit


@app.callback()
def acrouter(
    version: bool = typer.Option(
        False, "--version", callback=_show_and_exit, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """What stands before a command."""


def main() -> None:
    """Run the command line; what a person can mend is one message, not a traceback."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal or a pipe may know no more than ASCII
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        app()
    except AcrouterError as error:
        _end_with(str(error))
    except Exception as error:
        if not (words := _of_database(error)):
            raise
        _end_with(words)


def _end_with(words: str) -> NoReturn:
    Console(stderr=True).print(f"[bold red]acrouter:[/] {_escape(words)}", highlight=False, soft_wrap=True)
    sys.exit(2)


def _of_database(error: Exception) -> str:
    """Return what to tell where the database's machine is to blame: it is away, full, or not to be written."""
    from sqlalchemy.exc import OperationalError

    if not isinstance(error, OperationalError):
        return ""
    return f"The database cannot be used: {error.orig}. ACROUTER_DATABASE_URL says where it is."


def _escape(text: str) -> str:
    from rich.markup import escape

    return escape(text)

"""`acrouter token create|list|revoke`: tokens for the JSON API and for the metrics."""

import typer
from rich.markup import escape
from rich.table import Table

from bot.cli.output import wide_console
from store.database import Database
from store.settings import load_settings
from templates.escape import plain

app = typer.Typer(help="Tokens for the JSON API, the CSV files and the metrics.", no_args_is_help=True)


@app.command()
def create(
    name: str = typer.Argument(..., help="By which it is listed and revoked."),
    scope: list[str] = typer.Option(["read"], help="read: JSON API and CSV. metrics: /metrics. May be given twice."),
    days: int = typer.Option(0, min=0, max=36_500, help="Days until it ends. 0: it does not."),
) -> None:
    """Make a token and print it, this once."""
    from bot.dashboard.tokens import create_token

    typer.echo(create_token(_database(), name, scope, by="command line", days=days or None))


@app.command(name="list")
def show() -> None:
    """List the tokens, without themselves."""
    from bot.dashboard.tokens import list_tokens

    rows = list_tokens(_database())
    if not rows:
        typer.echo("No token yet. `acrouter token create NAME` makes one.")
        return
    table = Table("name", "scopes", "made", "ends", "last used")
    for row in rows:
        times = [
            one.strftime("%Y-%m-%d %H:%M") if one else "-" for one in (row.created_at, row.expires_at, row.used_at)
        ]
        table.add_row(escape(plain(row.name)), row.scopes, *times)
    wide_console().print(table)


@app.command()
def revoke(name: str = typer.Argument(..., help="The token's name.")) -> None:
    """End a token at once."""
    from bot.dashboard.tokens import revoke_token

    revoke_token(_database(), name, by="command line")
    typer.echo(f"'{name}' is revoked.")


def _database() -> Database:
    from bot.assembly import open_database

    return open_database(load_settings())

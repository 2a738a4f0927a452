"""`acrouter github-app create` and `check`."""

from pathlib import Path

import typer
from rich.console import Console
from rich.markup import escape

from store.errors import ConfigurationError

app = typer.Typer(help="Create the GitHub App, or check the one that is there.", no_args_is_help=True)


@app.command()
def create(
    public_url: str = typer.Option(..., help="Where GitHub reaches this acrouter, e.g. https://acrouter.example.com."),
    name: str = typer.Option("acrouter", help="The App's name; GitHub wants one that nobody else has."),
    organisation: str = typer.Option("", help="The organisation that owns the App. Default: you."),
    github: str = typer.Option("https://github.com", help="The GitHub; for Enterprise its own address."),
    api_url: str = typer.Option("", help="Its API, where that is not where GitHub usually has it."),
    folder: Path = typer.Option(Path(".acrouter"), help="Where the key and the webhook secret are kept (mode 0600)."),
    port: int = typer.Option(8976, help="A free port of this machine, for the way back from GitHub."),
    code: str = typer.Option("", help="The code in the address that GitHub sent you to, if the way back is blocked."),
) -> None:
    """Create the App with the exact permissions and events, in your browser, and keep its credentials."""
    from bot.github_app import credentials, flow
    from bot.github_app.place import Place

    console = Console(stderr=True)
    place = Place.of(github, api_url)
    public_url = public_url.rstrip("/")
    if not public_url.startswith(("https://", "http://")):
        raise ConfigurationError("--public-url: must begin with https:// (or http://, where no stranger can listen).")
    credentials.require_room(folder)
    if not code:
        with flow.started(name, organisation, place, public_url, port) as begun:
            console.print(f"Open [bold]{escape(begun.url)}[/] in a browser on this machine.", highlight=False)
            console.print(
                f"[dim]From another machine: forward the port, e.g. ssh -L {port}:127.0.0.1:{port} HOST.[/]",
                highlight=False,
            )
            code = begun.wait()
    if not code.isalnum():
        raise ConfigurationError("--code: the code is letters and digits alone.")
    made = credentials.exchange(place, code, public_url)
    settings = credentials.keep(made, folder, place, public_url)
    console.print(f"The App [bold]{escape(made.slug)}[/] is created. Put these lines into .env:", highlight=False)
    for key, value in settings.items():
        typer.echo(f"{key}={value}")
    console.print(f"Install it: {escape(made.page)}/installations/new", highlight=False, soft_wrap=True)


@app.command()
def check() -> None:
    """Compare the App's permissions, events, webhook and installations with what acrouter needs."""
    from bot.cli.findings import show
    from bot.github_app.checking import check_app
    from store.settings import load_settings

    show(check_app(load_settings()))

"""`acrouter bench NAME`: measures, and prints a table or writes figures."""

import json
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table

from store.errors import ConfigurationError
from store.suggest import did_you_mean


def bench(
    name: str = typer.Argument(..., help="What to measure, e.g. `pipeline`."),
    json_file: Path | None = typer.Option(None, "--json", help="Write the figures to this file too."),
) -> None:
    """Run a benchmark of the product."""
    from importlib import import_module

    # Found by name: benchmarks stand above all rooms, and no room imports them.
    benches: dict[str, str] = import_module("bench").BENCHES
    if name not in benches:
        raise ConfigurationError(
            f"There is no benchmark '{name}'.{did_you_mean(name, benches)} There are: {', '.join(sorted(benches))}."
        )
    figures: dict[str, float] = import_module(benches[name]).run(Console(stderr=True))
    table = Table("figure", "value")
    for figure, value in figures.items():
        table.add_row(figure, f"{value:.4g}")
    Console().print(table)
    if json_file is not None:
        json_file.write_text(json.dumps({"figures": figures}, indent=2) + "\n", encoding="utf-8")

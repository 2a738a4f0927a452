"""`acrouter bench NAME`: measures, and prints a table or writes figures."""

import json
from inspect import signature
from pathlib import Path

import typer
from rich.table import Table

from bot.cli.output import wide_console
from store.errors import ConfigurationError
from store.suggest import did_you_mean


def bench(
    name: str = typer.Argument(..., help="What to measure, e.g. `pipeline`."),
    json_file: Path | None = typer.Option(None, "--json", help="Write the figures to this file too."),
    data: Path | None = typer.Option(None, help="`routing`: the folder of CodeRouterBench."),
    tasks: Path | None = typer.Option(None, help="`routing`: the tasks of a stream of your own (JSON Lines)."),
    results: Path | None = typer.Option(None, help="`routing`: what each model did on each task (CSV)."),
    models: Path | None = typer.Option(None, help="`routing`: the pool with its prices (JSON)."),
    connections: int | None = typer.Option(None, min=1, help="`ingest`: how many connections deliver at once."),
    count: int | None = typer.Option(None, min=2, help="`long`: how many tasks."),
    out: Path | None = typer.Option(None, help="`routing`: a folder for the tables and plots."),
    short: bool = typer.Option(False, "--short", help="`routing`: few runs, held against the accepted figures."),
    accept: bool = typer.Option(False, "--accept", help="`routing --short`: accept the figures as the new reference."),
) -> None:
    """Run a benchmark of the product."""
    from importlib import import_module

    # Found by name: benchmarks stand above all rooms, and no room imports them.
    benches: dict[str, str] = import_module("bench").BENCHES
    if name not in benches:
        raise ConfigurationError(
            f"There is no benchmark '{name}'.{did_you_mean(name, benches)} There are: {', '.join(sorted(benches))}."
        )
    paths = {"data": data, "tasks": tasks, "results": results, "models": models, "out": out}
    given: dict[str, Path | int | None] = {**paths, "connections": connections, "count": count}
    options: dict[str, Path | bool | int] = {option: value for option, value in given.items() if value is not None}
    options |= {option: True for option, said in (("short", short), ("accept", accept)) if said}
    if json_file is not None and (not json_file.parent.is_dir() or json_file.is_dir()):  # not after minutes of work
        raise ConfigurationError(f"--json: {json_file} cannot be written: give a file's name in a folder that exists.")
    measure = import_module(benches[name]).run
    if unknown := sorted(set(options) - set(signature(measure).parameters)):
        raise ConfigurationError(f"The benchmark '{name}' takes no --{unknown[0]}.")
    figures: dict[str, float] = measure(wide_console(stderr=True), **options)
    table = Table("figure", "value")
    for figure, value in figures.items():
        table.add_row(figure, f"{value:.4g}")
    wide_console().print(table)
    if json_file is not None:
        json_file.write_text(json.dumps({"figures": figures}, indent=2) + "\n", encoding="utf-8")

"""`acrouter route TEXT` shows a decision, `acrouter replay` what another configuration would have earned."""

import json
import shlex
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bot.cli.output import wide_console
from store.errors import ConfigurationError
from store.settings import load_settings
from store.suggest import did_you_mean

if TYPE_CHECKING:
    from routing import RoutingDecision, RoutingTask
    from routing.replay import Estimate

_AS_JSON = typer.Option(False, "--json", help="Write JSON to standard output.")


def route(
    text: str = typer.Argument("", help="The task in words, in place of --task."),
    task: Path | None = typer.Option(None, help="A file with the task, as `acrouter solve` takes it. - is stdin."),
    title: str = typer.Option("", help="Its title, if it has one."),
    repository: str = typer.Option("", help="The repository's full name."),
    dimension: str = typer.Option("", help="The kind of task; found in the text where it is not given."),
    budget: float | None = typer.Option(None, min=0.0, help="USD: dearer models are left out."),
    explore: bool = typer.Option(True, help="Whether a model may be drawn that is not the best by what is known."),
    as_json: bool = _AS_JSON,
) -> None:
    """Show how a task would be routed: votes, weights, neighbours and plan. No model is called to work on it."""
    from bot.assembly import open_database
    from routing import Router
    from routing.evidence_store import EvidenceFeed
    from routing.metadata import metadata
    from routing.records import decision_columns
    from routing.types import Dimension
    from store.logs import configure_logging

    title, text = _words(text, task, title)
    if dimension and dimension not in list(Dimension):
        raise ConfigurationError(
            f"--dimension: there is no dimension '{dimension}'.{did_you_mean(dimension, list(Dimension))} "
            f"There are: {', '.join(Dimension)}."
        )
    settings = load_settings(log_level="error")
    configure_logging(settings)
    router = Router.from_settings(settings)
    EvidenceFeed(open_database(settings)).catch_up(router)
    asked = router.task("route", text, title=title, repository=repository, trigger="command_line")
    if dimension:
        asked = replace(asked, dimension=Dimension(dimension))
    decision = router.decide(asked, budget_usd=budget, explore=explore)
    if as_json:
        shown = {"task": {"dimension": asked.dimension.value, **asdict(metadata(asked))}, **decision_columns(decision)}
        typer.echo(json.dumps(shown, indent=2, default=str))
        return
    _show(wide_console(), asked, decision, len(router))


def replay(
    config: Path = typer.Option(..., help="YAML: voter_weights, encoder, exploration, deny, reward_usd_weight, ..."),
    as_json: bool = _AS_JSON,
) -> None:
    """Estimate what another configuration would have earned on the logged decisions."""
    from bot.assembly import open_database
    from routing.replay_config import load_config
    from store.logs import configure_logging
    from workers.replay import replay as run

    settings = load_settings(log_level="error")
    configure_logging(settings)
    other = load_config(config)
    replayed = run(open_database(settings), settings, other)
    result = replayed.result
    if as_json:
        typer.echo(json.dumps(asdict(replayed), indent=2))
        return
    console = wide_console()
    table = Table("mean reward a task", "estimate", "95% interval", title=f"{result.rounds} decisions")
    rows: dict[str, Estimate] = {
        "as logged": result.logged,
        "other configuration, IPS": result.ips,
        "other configuration, SNIPS": result.snips,
        "other configuration, doubly robust": result.dr,
    }
    for name, estimate in rows.items():
        table.add_row(name, f"{estimate.value:.4f}", f"{estimate.low:.4f} to {estimate.high:.4f}")
    console.print(table)
    console.print(
        f"Worth {result.effective_rounds:.0f} decisions of its own; {result.support:.0%} of its choices could have "
        f"been made then. {replayed.left_out} decisions could not be judged."
    )
    if result.support < 0.95:
        console.print(
            "[yellow]Much of what it would choose was never tried: trust the doubly robust figure no further than the "
            "router's own expectations, and IPS and SNIPS not at all.[/]"
        )


def _words(text: str, task: Path | None, title: str) -> tuple[str, str]:
    """Return title and text of the task, from a file or as they are."""
    from bot.cli.solve import read_task

    if task is not None:
        if text:
            raise ConfigurationError("The task is given twice: as words and by --task. Leave one of them out.")
        found, text = read_task(task)
        return title or found, text
    if not text.strip():
        raise ConfigurationError("The task is empty: say in words what should be done, or give --task FILE.")
    if _is_file(text):
        raise ConfigurationError(f"'{text}' is a file. Give it as --task {shlex.quote(text)} to have its text routed.")
    return title, text


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # too long for a name, or with a NUL
        return False


def _show(console: Console, task: "RoutingTask", decision: "RoutingDecision", known: int) -> None:
    from bot.cli.solve import decision_table
    from routing.metadata import metadata

    told = metadata(task)
    facts = [task.dimension.value, told.language or "language unknown", f"{told.size} characters"]
    facts += [
        word for word, there in (("traceback", told.has_traceback), ("failing test", told.has_failing_test)) if there
    ]
    console.print(f"[bold]{escape(decision.chosen)}[/] for: {escape(', '.join(facts))}. {known} attempts are known.")
    for reason in decision.reasons:
        console.print(f"- {escape(reason)}")
    console.print(decision_table(decision))
    votes = Table("voter", "weight", "confidence", "votes for", "reason", title="Votes")
    for vote in decision.votes:
        best = sorted(vote.shares.items(), key=lambda item: -item[1])[:3]
        shares = ", ".join(f"{name} {share:.0%}" for name, share in best) or "abstains"
        confidence = "" if vote.abstains else f"{vote.confidence:.2f}"
        votes.add_row(vote.voter, f"{vote.weight:.2f}", confidence, escape(shares), escape(vote.reason))
    console.print(votes)
    plan = Table("step", "model", "success", "cost", "value", title="Plan, while each step fails")
    for number, step in enumerate(decision.plan, start=1):
        plan.add_row(
            str(number), escape(step.model), f"{step.success:.2f}", f"${step.cost_usd:.4f}", f"{step.value:.3f}"
        )
    console.print(plan)
    if decision.neighbours:
        near = Table("similarity", "model", "score", "cost", "repository", "task", title="Neighbours")
        for n in decision.neighbours:
            near.add_row(
                f"{n.similarity:.2f}",
                escape(n.model),
                f"{n.score:.2f}{' (outcome)' if n.final else ''}",
                f"${n.cost_usd:.4f}",
                escape(n.repository),
                escape(n.title or n.key),
            )
        console.print(near)

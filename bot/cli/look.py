"""`acrouter stats`, `tasks`, `task`, `models`, `tail`, `dashboard`: the dashboard's numbers without a browser."""

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bot.cli.output import wide_console
from store.errors import ConfigurationError
from store.logs import configure_logging
from store.settings import Settings, load_settings
from templates.escape import cut, plain, usd

if TYPE_CHECKING:
    from bot.dashboard.facts import Facts
    from bot.dashboard.intervals import Share
    from bot.dashboard.task_detail import TaskDetail
    from store.database import Database

_JSON = typer.Option(False, "--json", help="Print JSON, the same as the API's.")
# No row has another number, and a database chokes on a greater one.
_NUMBER = typer.Argument(..., min=1, max=2**63 - 1, help="The task's number.")
_DAYS = typer.Option(30, help="The last 7, 30, 90 or 365 days, today included.")
_COLOURS = {"good": "green", "bad": "red", "wait": "yellow", "cool": "cyan"}


def stats(days: int = _DAYS, as_json: bool = _JSON) -> None:
    """Success, spend and savings, beside the period before."""
    from bot.dashboard.overview import overview
    from bot.dashboard.periods import of_days
    from bot.dashboard.render import duration, percent
    from bot.dashboard.shapes.numbers import OverviewOut

    settings, _, facts = _open()
    view = overview(facts, of_days(days), settings)
    if as_json:
        typer.echo(OverviewOut.of(view).model_dump_json(indent=2))
        return
    now, before = view.numbers, view.before
    table = Table("", f"last {days} days", f"{days} days before", title=view.period.words(), title_justify="left")
    table.add_row("tasks", str(now.tasks), str(before.tasks))
    table.add_row("merged PRs", str(now.merged), str(before.merged))
    table.add_row("success rate", _share(now.success), _share(before.success))
    table.add_row("spend", usd(now.spend_usd), usd(before.spend_usd))
    table.add_row("cost per merged PR", _usd(now.usd_per_merged), _usd(before.usd_per_merged))
    table.add_row("trigger to PR", duration(now.seconds_to_pr), duration(before.seconds_to_pr))
    console = wide_console()
    console.print(table)
    if view.best is not None:
        console.print(f"Best value: [bold]{_safe(view.best.model)}[/], {_usd(view.best.usd_per_merged)} a merged PR.")
    saved = view.savings
    if saved is not None:
        console.print(
            f"Against always using {_safe(saved.best.name)}: saved {usd(saved.saved_usd.value)} "
            f"({usd(saved.saved_usd.low)} to {usd(saved.saved_usd.high)}), success "
            f"{percent(saved.acrouter.success.value)} against {percent(saved.best.success.value)} ({saved.method})."
        )
    if not now.tasks:
        console.print("No task in this period. Label an issue, or run `acrouter demo`.")


def models(days: int = _DAYS, as_json: bool = _JSON) -> None:
    """Each model's tries, success, cost and time."""
    from bot.dashboard import stats as numbers
    from bot.dashboard.periods import of_days
    from bot.dashboard.render import duration
    from bot.dashboard.shapes.numbers import ModelOut

    _, _, facts = _open()
    period = of_days(days)
    rows = numbers.by_model(numbers.within(facts, period), numbers.within(facts, period.before()))
    if as_json:
        typer.echo(json.dumps([ModelOut.of(row).model_dump(mode="json") for row in rows], indent=2))
        return
    if not rows:
        typer.echo(f"No model was tried from {period.words()}. Label an issue, or run `acrouter demo`.")
        return
    table = Table("model", "attempts", "success", "an attempt", "a merged PR", "takes", "drift", title=period.words())
    for row in rows:
        drift = f"{row.moved.value * 100:+.0f} points" if row.moved and row.drifts else ""
        table.add_row(
            _safe(row.model),
            str(row.attempts),
            _share(row.success),
            _usd(row.usd_per_attempt),
            _usd(row.usd_per_merged),
            duration(row.seconds),
            drift,
        )
    wide_console().print(table)


def tasks(
    state: str = typer.Option("", help="A state, or `open` or `ended`."),
    repository: str = typer.Option("", help="OWNER/NAME."),
    model: str = typer.Option("", help="Tasks that this model worked on."),
    text: str = typer.Option("", help="Words in the title, or in the text of a newer task."),
    limit: int = typer.Option(20, min=1, max=500, help="How many, the newest first."),
    as_json: bool = _JSON,
) -> None:
    """The newest tasks."""
    from bot.dashboard.render import duration
    from bot.dashboard.shapes.tasks import TaskOut
    from bot.dashboard.task_list import list_tasks, parse_filter

    _, database, facts = _open()
    wanted = parse_filter({"state": state, "repository": repository, "model": model, "text": text})
    with database.reading() as session:
        found = list_tasks(session, facts, wanted, page=limit)
    if as_json:
        typer.echo(json.dumps([TaskOut.of(line).model_dump(mode="json") for line in found.lines], indent=2))
        return
    if not found.lines:
        asked = any((state, repository, model, text))
        typer.echo("No task is like that." if asked else "No task yet. Label an issue, or run `acrouter demo`.")
        return
    table = Table("task", "title", "where", "state", "model", "cost", "took")
    for line in found.lines:
        where = f"{line.repository}#{line.target_number}" if line.target_number else line.repository or "local"
        table.add_row(
            str(line.id),
            _safe(cut(line.title, 60)),
            _safe(where),
            _state(line.state),
            _safe(line.model),
            usd(line.cost_usd),
            duration(line.seconds),
        )
    console = wide_console()
    console.print(table)
    console.print(f"{len(found.lines)} of {found.total}.")


def task(number: int = _NUMBER, as_json: bool = _JSON) -> None:
    """One task: why its models were chosen, what they did, what it cost."""
    from bot.dashboard.shapes.tasks import TaskDetailOut

    settings, database, facts = _open()
    found = _detail(settings, database, number)
    if as_json:
        names = frozenset(facts.repositories.values())
        typer.echo(TaskDetailOut.of(found, names).model_dump_json(indent=2))
        return
    console = wide_console()
    row = found.row
    console.print(f"[bold]{_safe(found.title)}[/]  {_state(row['state'])}  {_safe(row['reason'])}")
    if found.decision is not None:
        console.print(f"Why [bold]{_safe(found.decision.chosen)}[/] went first:")
        for reason in found.decision.reasons:
            console.print(f"- {_safe(reason)}")
    table = Table("#", "model", "verdict", "score", "steps", "cost")
    for attempt in found.attempts:
        one, judged = attempt.row, attempt.verification
        score = f"{one['score']:.2f}" if one["score"] is not None else "-"
        verdict = judged.verdict if judged else str(one["state"])
        table.add_row(
            str(one["number"]), _safe(one["model"]), _safe(verdict), score, str(one["steps"]), usd(one["cost_usd"])
        )
    console.print(table)
    console.print(f"Spent {usd(found.spent_usd)} of {usd(row['budget_usd'])}. {_safe(row['pr_url'])}")


def tail(number: int = _NUMBER, as_json: bool = _JSON) -> None:
    """Follow a task until it has ended: its history, and each step of the model at work."""
    settings, database, _ = _open()
    console = wide_console()
    told, steps = 0, (0, 0)
    while True:
        found = _detail(settings, database, number)
        for entry in found.history[told:]:
            _tell(console, as_json, {"at": entry.at.isoformat(), "state": str(entry.state), "message": entry.message})
        told = len(found.history)
        steps = _tell_steps(console, as_json, database, found, steps)
        if not found.row["state"].is_open:
            return
        time.sleep(0.5)


def dashboard() -> None:
    """Print a one-time link that signs in to the dashboard of this machine as its admin."""
    from bot.assembly import open_database
    from bot.dashboard.tokens import make_link_word

    settings = load_settings()
    _require_answer(settings)
    word = make_link_word(open_database(settings))
    typer.echo(link(settings, settings.host, settings.port, word))


def link(settings: Settings, host: str, port: int, word: str) -> str:
    """Return the address of a one-time link."""
    return f"{settings.public_url.rstrip('/') or local_url(host, port)}/sign-in/link/{word}"


def local_url(host: str, port: int) -> str:
    """Return where this machine finds what listens on `host`; an IPv6 address stands in brackets (RFC 3986, 3.2.2)."""
    found = "127.0.0.1" if host in ("0.0.0.0", "::") else host  # noqa: S104
    return f"http://[{found}]:{port}" if ":" in found else f"http://{found}:{port}"


def _require_answer(settings: Settings) -> None:
    """Make sure that a link would lead somewhere; this machine may not reach itself by its public address.

    Raises:
        ConfigurationError: no acrouter answers.
    """
    import httpx

    here = local_url(settings.host, settings.port)
    places = [here, settings.public_url.rstrip("/")] if settings.public_url else [here]
    for place in places:
        with suppress(httpx.HTTPError, httpx.InvalidURL):
            if "database" in httpx.get(f"{place}/healthz", timeout=5, trust_env=place != here).text:
                return
    raise ConfigurationError(
        f"No acrouter answers at {' or '.join(places)}. Start `acrouter up`; if it listens on another port, "
        "set ACROUTER_PORT to that."
    )


def _open() -> "tuple[Settings, Database, Facts]":
    from bot.assembly import open_database
    from bot.dashboard.facts_store import read_facts

    settings = load_settings(log_level="error")
    configure_logging(settings)
    database = open_database(settings)
    return settings, database, read_facts(database)


def _detail(settings: Settings, database: "Database", number: int) -> "TaskDetail":
    from bot.dashboard.roles import Role, Viewer
    from bot.dashboard.task_detail import task_detail

    everyone = Viewer("command line", Role.ADMIN, None)
    with database.reading() as session:
        found = task_detail(session, number, everyone, settings.github_web_url)
    if found is None:
        raise ConfigurationError(f"There is no task {number}. `acrouter tasks` lists them.")
    return found


def _tell_steps(
    console: Console, as_json: bool, database: "Database", found: "TaskDetail", seen: tuple[int, int]
) -> tuple[int, int]:
    """Print the steps that are new since (attempt, step); return where it stands now."""
    from bot.dashboard.task_detail import trajectory_of
    from bot.dashboard.trajectories import read_steps

    if not found.attempts:
        return seen
    last = found.attempts[-1].row
    after = seen[1] if seen[0] == last["number"] else 0
    if last["steps"] <= after:
        return int(last["number"]), after
    with database.reading() as session:
        attempt = trajectory_of(session, int(found.row["id"]), int(last["number"]))
    for step in read_steps(attempt[1] if attempt else {}, after).steps:
        commands = [command.text for command in step.commands]
        said = {"attempt": last["number"], "step": step.number, "thought": step.thought, "commands": commands}
        _tell(console, as_json, said)
    return int(last["number"]), int(last["steps"])


def _tell(console: Console, as_json: bool, said: dict[str, Any]) -> None:
    if as_json:
        typer.echo(json.dumps(said))
    elif "message" in said:
        console.print(f"[dim]{said['at'][11:19]}[/] {_state(said['state'])} {_safe(said['message'])}")
    else:
        shown: Sequence[str] = said["commands"]
        console.print(f"  step {said['step']}: {_safe(cut(said['thought'], 300))}")
        for command in shown:
            console.print(f"    [cyan]$ {_safe(cut(command, 300))}[/]")


def _safe(text: object) -> str:
    """Return untrusted text that steers no terminal and is no markup."""
    return escape(plain(text))


def _state(state: object) -> str:
    from bot.dashboard.render import state_words

    words, kind = state_words(str(state))
    return f"[{_COLOURS[kind]}]{words}[/]" if kind in _COLOURS else words


def _share(share: "Share") -> str:
    if share.value is None:
        return "-"
    return f"{share.value:.0%} ({share.low:.0%} to {share.high:.0%}, {share.successes} of {share.cases})"


def _usd(value: float | None) -> str:
    return "-" if value is None else usd(value)

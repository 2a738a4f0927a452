"""`acrouter solve`: the pipeline on a local repository and a text file, no GitHub."""

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bot.cli.output import wide_console
from store.errors import ConfigurationError
from store.logs import configure_logging
from store.settings import load_settings
from store.states import TaskKind, TaskState, Trigger

if TYPE_CHECKING:
    from routing import RoutingDecision
    from routing.pool import ModelPool
    from store.database import Database
    from workers.intake import NewTask
    from workers.runtime import Runtime

_MAX_TASK_BYTES = 1_000_000


def solve(
    repo: Path = typer.Option(Path(), help="The local Git repository."),
    task: Path = typer.Option(..., help="The task, as text. - is stdin."),
    model: str = typer.Option("", help="Use this model of the pool and no other."),
    branch: str = typer.Option("", help="Put the patch on a new branch of the repository instead of stdout."),
    budget: float | None = typer.Option(
        None, help="USD to spend at most. ACROUTER_TASK_BUDGET_USD is the default and the most."
    ),
    dry_run: bool = typer.Option(False, "--dry-run", help="Show the decision and stop: no model is called."),
) -> None:
    """Solve a task in a local repository: the patch comes on stdout, the story on stderr."""
    from sandbox.local_repository import check_local

    console = wide_console(stderr=True)
    settings = load_settings(log_level="error")
    configure_logging(settings)
    title, text = read_task(task)
    if budget is not None and not 0 < budget < math.inf:
        raise ConfigurationError("--budget: must be an amount of US dollars, more than 0.")
    check_local(repo, branch)

    # Seconds of import: wrong input is told without them.
    from bot.assembly import make_runtime, open_database
    from workers.intake import NewTask
    from workers.queues import LocalQueue
    from workers.reconciler import revive_lost_tasks

    queue = LocalQueue(1)  # never started: this process works by itself
    runtime = make_runtime(settings, open_database(settings), queue, forge=None)
    if model:
        runtime.pool.get(model)
    most = settings.task_budget_usd if budget is None else min(budget, settings.task_budget_usd)
    if dry_run:
        _show_decision(console, runtime, title, text, model, repo.resolve().name, budget_usd=most)
        return
    _require_key(runtime.pool, model)
    revive_lost_tasks(runtime)  # of commands that were interrupted
    console.print(f"[dim]{escape(runtime.backend.describe())}[/]")
    if budget is not None and budget > settings.task_budget_usd:
        console.print(
            f"--budget is more than one task may cost here: at most ${settings.task_budget_usd:.2f} are spent. "
            "ACROUTER_TASK_BUDGET_USD raises it.",
            soft_wrap=True,
        )
    wanted = NewTask(
        repository_id=None,
        kind=TaskKind.LOCAL,
        trigger=Trigger.COMMAND_LINE,
        target=f"local/{repo.resolve()}",
        target_number=None,
        requested_by="you",
        delivery_guid=None,
        title=title,
        text=text,
        base_ref=str(repo.resolve()),
        pinned_model=model,
        budget_usd=budget,
        branch=branch,
    )
    task_id = _start(runtime, wanted)
    _work_on(console, runtime, task_id)
    queue.close()
    _hand_in(console, runtime, task_id, branch)


def read_task(path: Path) -> tuple[str, str]:
    """Return title and text of a task's file; the first line is the title, as in a commit message.

    Raises:
        ConfigurationError: there is no such file, it cannot be read, or it is empty, too large or no text.
    """
    import sys

    if str(path) != "-" and not path.is_file():
        raise ConfigurationError(f"--task: {path} is no file. Give the path of a text file, or - for standard input.")
    try:
        raw = sys.stdin.buffer.read(_MAX_TASK_BYTES + 1) if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"--task: {path} cannot be read: {error.strerror}.") from error
    if len(raw) > _MAX_TASK_BYTES:
        raise ConfigurationError(f"--task: {path} is larger than {_MAX_TASK_BYTES} bytes.")
    if b"\0" in raw:
        raise ConfigurationError(f"--task: {path} is no text. Give a file of plain text.")
    text = raw.decode("utf-8", errors="replace").strip()
    if not text:
        raise ConfigurationError(f"--task: {path} is empty. Write what should be done; the first line is the title.")
    title, _, body = text.partition("\n")
    return title.lstrip("# ").strip(), body.strip() or title


def _require_key(pool: "ModelPool", model: str) -> None:
    """Say so before anything is done where no model that may be used has its key."""
    from routing.pool import resolve_key

    mistakes = []
    for spec in [pool.get(model)] if model else pool.models:
        try:
            resolve_key(spec)
        except ConfigurationError as error:
            mistakes.append(str(error))
        else:
            return
    raise ConfigurationError("\n".join(mistakes))


def _start(runtime: "Runtime", wanted: "NewTask") -> int:
    """Return the id of the task that was begun.

    Raises:
        ConfigurationError: it is refused, or another command is at work on the repository.
    """
    from workers import intake

    match intake.start_task(runtime.database, runtime.queue, wanted, runtime.settings):
        case intake.Started(task_id):
            return task_id
        case intake.Refused(reason):
            raise ConfigurationError(reason)
        case intake.Joined(task_id):
            raise ConfigurationError(
                f"Task {task_id} is at work on this repository already. If its command is gone, it counts as "
                f"interrupted within {runtime.settings.lease_s:.0f} seconds."
            )


def _work_on(console: Console, runtime: "Runtime", task_id: int) -> None:
    from workers.pipeline import work_on
    from workers.reconciler import revive_lost_tasks

    try:
        with _history_shown(console, runtime.database, task_id):
            work_on(runtime, task_id)
    except KeyboardInterrupt:
        revive_lost_tasks(runtime)
        raise


def _hand_in(console: Console, runtime: "Runtime", task_id: int, branch: str) -> None:
    """Print the verdict, and the patch where it went on no branch.

    Raises:
        typer.Exit: there is no patch to hand in (1).
    """
    from workers.views import task_view

    view = task_view(runtime.database, task_id, runtime.settings, runtime.pool)
    published = view.published
    if view.task.state is not TaskState.PUBLISHED or published is None:
        console.print(f"Nothing to hand in. Spent: ${view.spent_usd:.4f}.", soft_wrap=True)
        raise typer.Exit(1)
    verdict = published.verification.summary if published.verification else ""
    console.print(f"[bold]{escape(verdict)}[/] Spent: ${view.spent_usd:.4f}.", soft_wrap=True)
    if not branch:
        typer.echo(published.attempt.patch.encode(), nl=False)  # git's own bytes, whatever the terminal's encoding


def _show_decision(
    console: Console, runtime: "Runtime", title: str, text: str, model: str, repository: str, *, budget_usd: float
) -> None:
    from routing import RoutingTask
    from routing.dimension import classify

    task = RoutingTask(
        key="dry-run",
        text=f"{title}\n\n{text}",
        dimension=classify(title, text, trigger=Trigger.COMMAND_LINE.value),
        repository=repository,
        title=title,
        trigger=Trigger.COMMAND_LINE.value,
    )
    decision = runtime.brain.choose(task, pinned=model, budget_usd=budget_usd)
    console.print(decision_table(decision))
    for reason in decision.reasons:
        console.print(f"- {escape(reason)}")


def decision_table(decision: "RoutingDecision") -> Table:
    """Return a decision's ranked list as a table."""
    table = Table("model", "share", "propensity", "expected score", "expected cost")
    for ranked in decision.ranked:
        table.add_row(
            escape(ranked.model),
            f"{ranked.share:.2f}",
            f"{ranked.propensity:.2f}",
            f"{ranked.expected_score:.2f}",
            f"${ranked.expected_cost_usd:.4f}",
        )
    return table


@contextmanager
def _history_shown(console: Console, database: "Database", task_id: int) -> Iterator[None]:
    """Print each row of the task's history as it appears."""
    from sqlmodel import col, select

    from store.tables import History

    ended = threading.Event()
    seen = 0

    def show_new() -> None:
        nonlocal seen
        with database.reading() as session:
            rows = session.exec(
                select(History).where(History.task_id == task_id, col(History.id) > seen).order_by(col(History.id))
            ).all()
        for row in rows:
            console.print(f"[cyan]{row.state.value:>10}[/]  {escape(row.message)}")
            seen = row.id or seen

    def follow() -> None:
        while not ended.wait(0.3):
            show_new()

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        show_new()

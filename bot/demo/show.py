"""What the demo shows of a task, as tables and panels for a terminal. Untrusted text is stripped and escaped."""

from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table

from store.tables import Decision
from templates.escape import cut_middle, plain, usd
from workers.views import AttemptView, TaskView

_LONGEST_DIFF = 6000


def safe(text: object) -> str:
    """Return untrusted text without control characters, as Rich markup that shows itself."""
    return escape(plain(text))


def model_name(name: str, *, scripted: bool) -> str:
    return f"{safe(name)} [dim](scripted)[/]" if scripted else safe(name)


def decision_shown(decision: Decision, *, scripted: bool) -> RenderableType:
    """Return the votes, what is expected of each model, and the reasons."""
    voters = [vote for vote in decision.votes if not vote.get("abstains")]
    table = Table(title="The votes", title_justify="left")
    table.add_column("")
    for line in decision.ranked:
        table.add_column(model_name(line["model"], scripted=scripted), justify="right")
    for vote in voters:
        shares = [f"{vote['shares'].get(line['model'], 0.0):.2f}" for line in decision.ranked]
        table.add_row(f"{safe(vote['voter'])} (weight {vote['weight']:.2f})", *shares)
    table.add_row("[bold]share by expected reward[/]", *(f"[bold]{line['share']:.2f}[/]" for line in decision.ranked))
    table.add_row("expected score", *(f"{line['expected_score']:.2f}" for line in decision.ranked))
    table.add_row("expected cost", *(usd(line["expected_cost_usd"]) for line in decision.ranked))
    return Group(table, *(f"- {safe(reason)}" for reason in decision.reasons))


def attempts_shown(view: TaskView) -> RenderableType:
    """Return what each attempt came to: the verdict, the tests before and after, the cost."""
    table = Table("#", "model", "verdict", title="The attempts", title_justify="left")
    table.add_column("score", justify="right")
    table.add_column("tests, before -> after")
    table.add_column("cost", justify="right", no_wrap=True)
    for attempt in view.attempts:
        table.add_row(*_attempt_cells(attempt))
    return table


def _attempt_cells(view: AttemptView) -> list[str]:
    attempt, verification = view.attempt, view.verification
    verdict = verification.verdict if verification else attempt.exit_status or attempt.state.value
    colour = "green" if verdict == "verified" else "red"
    return [
        str(attempt.number),
        model_name(attempt.model, scripted=view.scripted),
        f"[{colour}]{safe(verdict)}[/]",
        f"{attempt.score:.2f}" if attempt.score is not None else "-",
        _tests(verification.tests if verification else {}),
        usd(attempt.cost_usd),
    ]


def _tests(tests: dict[str, Any]) -> str:
    before, after = tests.get("before"), tests.get("after")
    if not before or not after:
        return "not run"
    lines = [f"{kind} {before[kind]} -> {after[kind]}" for kind in ("passed", "failed")]
    if proved := tests.get("fail_to_pass"):
        lines.append(f"[green]{len(proved)} proved[/]")
    if broken := tests.get("pass_to_fail"):
        lines.append(f"[red]{len(broken)} broken[/]")
    return "\n".join(lines)


def diff_shown(patch: str) -> RenderableType:
    """Return a patch with its colours, cut in the middle where it is long."""
    return Panel(Syntax(cut_middle(plain(patch), _LONGEST_DIFF), "diff", theme="ansi_dark"), title="The patch")


def comparison_shown(first: TaskView, second: TaskView) -> RenderableType:
    """Return two decisions side by side."""
    table = Table("", f"issue {first.task.target_number}", f"issue {second.task.target_number}", show_lines=True)
    table.columns[0].style = "bold"
    table.add_row("title", safe(first.task.title), safe(second.task.title))
    table.add_row("first choice", *(_choice(view) for view in (first, second)))
    table.add_row("why", *(_reasons(view) for view in (first, second)))
    table.add_row("similar tasks known", *(_neighbours(view) for view in (first, second)))
    table.add_row("attempts", *(str(len(view.attempts)) for view in (first, second)))
    table.add_row("spent", *(usd(view.spent_usd) for view in (first, second)))
    return table


def _choice(view: TaskView) -> str:
    if view.decision is None:
        return "-"
    scripted = any(attempt.scripted for attempt in view.attempts)
    return f"[bold]{model_name(view.decision.chosen, scripted=scripted)}[/]"


def _reasons(view: TaskView) -> str:
    return "\n".join(f"- {safe(reason)}" for reason in (view.decision.reasons if view.decision else ()))


def _neighbours(view: TaskView) -> str:
    lines = [
        f"{safe(one['model'])}: score {one['score']:.2f}{' (final)' if one['final'] else ''}, "
        f"similarity {one['similarity']:.2f}"
        for one in (view.decision.neighbours if view.decision else ())
    ]
    return "\n".join(lines) or "none"

"""`acrouter calibration`: how well the verifier's score predicts what becomes of the PRs."""

import json
from collections import defaultdict
from dataclasses import asdict

import typer
from rich.table import Table

from bot.cli.output import wide_console
from store.settings import load_settings


def calibration(
    as_json: bool = typer.Option(False, "--json", help="Write JSON to standard output."),
) -> None:
    """Show the Brier score and the reliability of the verifier's score, from the own history."""
    from bot.assembly import open_database
    from routing.calibration_report import report
    from store.logs import configure_logging
    from workers.calibration import judged_attempts

    settings = load_settings(log_level="error")
    configure_logging(settings)
    judged = judged_attempts(open_database(settings))
    whole = report([one.score for one in judged], [one.outcome for one in judged])
    groups: defaultdict[str, list[int]] = defaultdict(list)
    signals: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for place, one in enumerate(judged):
        groups[one.dimension].append(place)
        for name, value in one.signals.items():
            signals[name].append((value, one.outcome))
    dimensions = {
        name: report([judged[p].score for p in places], [judged[p].outcome for p in places])
        for name, places in sorted(groups.items())
    }
    by_signal = {name: report([v for v, _ in pairs], [y for _, y in pairs]) for name, pairs in signals.items()}
    if as_json:
        told = {
            "all": asdict(whole) | {"skill": whole.skill},
            "dimensions": {name: asdict(found) | {"skill": found.skill} for name, found in dimensions.items()},
            "signals": {name: asdict(found) | {"skill": found.skill} for name, found in by_signal.items()},
        }
        typer.echo(json.dumps(told, indent=2))
        return
    console = wide_console()
    table = Table("", "PRs", "Brier", "Brier of the mean", "skill", title="The verifier's score against the outcome")
    for name, found in {"all": whole, **dimensions, **{f"signal {n}": f for n, f in by_signal.items()}}.items():
        table.add_row(
            name or "unknown", str(found.count), f"{found.brier:.3f}", f"{found.base_brier:.3f}", f"{found.skill:.2f}"
        )
    console.print(table)
    curve = Table("score", "PRs", "mean score", "mean outcome", "95% interval", title="Reliability")
    for line in whole.bins:
        curve.add_row(
            f"{line.low:.1f} to {line.high:.1f}",
            str(line.count),
            f"{line.mean_score:.2f}",
            f"{line.mean_outcome:.2f}",
            f"{line.outcome_low:.2f} to {line.outcome_high:.2f}",
        )
    console.print(curve)
    console.print(f"Expected calibration error: {whole.expected_calibration_error:.3f}. Only published attempts count.")

"""The figures as Markdown tables."""

from collections.abc import Mapping, Sequence

from bench.routing.figures import CI

_COLUMNS = (
    "released.avgperf",
    "released.cumreg",
    "released.usd",
    "permuted.cumreg",
    "delay10.cumreg",
    "delay50.cumreg",
    "tried",
    "found",
    "outcomes",
)


def tables(figures: Mapping[str, float], groups: Sequence[str], players: Sequence[str]) -> str:
    """Return a table for each group (`ood.track1`, `id`, ...), the best permuted CumReg first.

    Args:
        figures: by name.
        groups: what the figures' names begin with, behind the player's name.
        players: names in front, empty for the router under test.
    """
    return "\n\n".join(found for group in groups if (found := _table(figures, group, players)))


def _table(figures: Mapping[str, float], group: str, players: Sequence[str]) -> str:
    rows = []
    for player in players:
        prefix = f"{player}.{group}" if player else group
        if f"{prefix}.released.cumreg" in figures or f"{prefix}.permuted.cumreg" in figures:
            rows.append((prefix, player.removeprefix("peer.") or "**acrouter**"))
    if not rows:
        return ""
    columns = [c for c in _COLUMNS if any(f"{prefix}.{c}" in figures for prefix, _ in rows)]
    rows.sort(key=lambda row: figures.get(f"{row[0]}.permuted.cumreg", figures.get(f"{row[0]}.released.cumreg", 0.0)))
    head = "| router | " + " | ".join(c.replace(".", " ") for c in columns) + " |"
    lines = [f"**{group}**", "", head, "|---" * (len(columns) + 1) + "|"]
    for prefix, shown in rows:
        cells = [_cell(figures, f"{prefix}.{column}") for column in columns]
        lines.append(f"| {shown} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(figures: Mapping[str, float], name: str) -> str:
    if name not in figures:
        return ""
    margin = figures.get(name + CI)
    return f"{figures[name]:.1f}" + (f" ± {margin:.1f}" if margin else "")

"""The dashboard's documentation is level with what it documents."""

import json
import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[3]


def test_the_docs_explain_the_numbers_as_the_page_does() -> None:
    docs = (ROOT / "docs" / "dashboard.md").read_text(encoding="utf-8")
    page = (ROOT / "templates" / "pages" / "numbers.md").read_text(encoding="utf-8")
    told = docs.split('page "What the numbers mean" shows) -->\n')[1].split("<!-- numbers:end -->")[0]
    assert re.sub(r"(?m)^#+ ", "", told) == re.sub(r"(?m)^#+ ", "", page)


def test_board_and_alerts_ask_for_metrics_that_there_are() -> None:
    source = (ROOT / "bot" / "dashboard" / "metrics.py").read_text(encoding="utf-8")
    known = set(re.findall(r'"(acrouter_\w+)"', source))
    counters = set(re.findall(r'CounterMetricFamily\("(acrouter_\w+)"', source))
    known = (known - counters) | {f"{name}_total" for name in counters}
    board = json.loads((ROOT / "docs" / "grafana" / "board.json").read_text(encoding="utf-8"))
    alerts = yaml.safe_load((ROOT / "docs" / "grafana" / "alerts.yaml").read_text(encoding="utf-8"))
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    asked += [rule["expr"] for group in alerts["groups"] for rule in group["rules"]]
    used = {name for expression in asked for name in re.findall(r"acrouter_\w+", expression)}
    assert used <= known, used - known
    assert len(used) >= 9

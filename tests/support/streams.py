"""Small streams for the bench's tests, as files and as arrays."""

import json
from pathlib import Path

MODELS = {
    "models": [
        {"model": "small", "input_per_1m": 0.1, "output_per_1m": 0.4},
        {"model": "large", "input_per_1m": 5, "output_per_1m": 25},
    ]
}


def write_stream(folder: Path) -> dict[str, Path]:
    """Write three tasks with two models: `small` solves the first two, `large` the last two."""
    paths = {name: folder / name for name in ("tasks.jsonl", "results.csv", "models.json")}
    tasks = [
        {"task_id": f"t{n}", "dimension": "bug_fixing", "prompt": f"crash number {n} in the parser"} for n in range(3)
    ]
    paths["tasks.jsonl"].write_text("\n".join(map(json.dumps, tasks)) + "\n", encoding="utf-8")
    rows = ["task_id,model,resolved,apply_ok,cost_usd,calls"]
    for number in range(3):
        rows.append(f"t{number},small,{int(number < 2)},1,0.1,5")
        rows.append(f"t{number},large,{int(number > 0)},{int(number > 0)},2.0,{9 * (number > 0)}")
    paths["results.csv"].write_text("\n".join(rows) + "\n", encoding="utf-8")
    paths["models.json"].write_text(json.dumps(MODELS), encoding="utf-8")
    return {name.partition(".")[0]: path for name, path in paths.items()}

"""acrouter is on no package index, where its name is free: what people are told to install is the checkout."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("bot", "workers", "routing", "sandbox", "store", "templates", "bench")


def test_extras_are_installed_from_the_checkout_and_are_there() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    sources = [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    texts = {path: path.read_text(encoding="utf-8") for path in [*pages, *sources] if path.name != "CHANGELOG.md"}
    by_name = [path for path, text in texts.items() if re.search(r"install '?acrouter\b", text)]
    assert by_name == []
    there = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    named = {extra for text in texts.values() for extra in re.findall(r"pip install '\.\[(\w+)\]'", text)}
    assert {"otel", "train", "embeddings", "bench"} <= named <= set(there)

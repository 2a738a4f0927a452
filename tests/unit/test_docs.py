"""The pages for people name only what is there: links, headings, files, settings, commands and their options."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from typer.main import get_command

from bot.cli.main import app
from store.settings import PREFIX, Settings

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
BUT_SETTINGS = {"ACROUTER_BENCH_DATA", "ACROUTER_BENCH_POSTGRES"}
"""Read by the benchmarks and their tests alone."""

pytestmark = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def test_every_relative_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if re.match("[a-z]+:", link):
            continue
        path, _, heading = unquote(link).partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not heading or heading in anchors(target), link


def test_every_file_of_the_repository_is_there(page: Path) -> None:
    rooms = "bot|workers|routing|sandbox|store|templates|alembic|bench|docs|tests|scripts|requirements"
    for name in re.findall(rf"`((?:{rooms})/[\w./-]*\w)(?:::\w+)?`", page.read_text(encoding="utf-8")):
        if page.name != "CHANGELOG.md":  # tells of the past, too
            assert (ROOT / name).exists(), name


def test_every_setting_is_one(page: Path) -> None:
    known = {PREFIX + name.upper() for name in Settings.model_fields} | BUT_SETTINGS
    named = re.findall(rf"\b{PREFIX}[A-Z][A-Z_]*[A-Z]\b", page.read_text(encoding="utf-8"))
    assert set(named) <= known


def test_every_command_is_there_and_takes_its_options(page: Path) -> None:
    for line in typed(page.read_text(encoding="utf-8")):
        words = re.split(r"acrouter ", line, maxsplit=1)[1].split()
        command: Any = get_command(app)
        while hasattr(command, "commands") and words and not words[0].startswith("-"):
            name = words.pop(0).strip(",")
            assert name in command.commands, line
            command = command.commands[name]
        options = {option for one in command.params for option in (*one.opts, *one.secondary_opts)} | {"--help"}
        given = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert given <= options, line


def typed(text: str) -> Iterator[str]:
    """Yield what stands as acrouter's command line in a code block or between backticks."""
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    lines = [line.split("#")[0] for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    for line in [*lines, *re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))]:
        for part in re.split(r"&&|;|\||>>", line):
            if re.match(r"(?:[A-Z_]+=\S+ )*(?:docker compose exec \w+ )?(?:\.venv/bin/)?acrouter [a-z-]", part.strip()):
                yield part


def anchors(page: Path) -> set[str]:
    """Return what GitHub makes of the headings, and the anchors that the page has of its own."""
    text = page.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    made = {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}
    return made | set(re.findall(r'<a id="([^"]+)"', text))

"""`acrouter demo`: the whole job on a real bug, on a machine that needs neither GitHub nor a model's key."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

from bot.demo.bugs import find_bug
from bot.demo.closing import closing_words
from bot.demo.materialise import BugRepository, materialise
from bot.demo.package_index import pip_index_settings
from store.settings import load_settings
from templates import render

if TYPE_CHECKING:
    from bot.demo.stage import Stage

FIRST, SECOND = "boltons-atomicsaver-pathlib", "boltons-find-files-pathlib"


def run_demo(*, model: str = "", keep: bool = False, console: Console | None = None) -> int:
    """Play the demo and return the exit status: 0 only where the story held.

    `model` is LiteLLM's name of a paid model, in place of the scripted ones; `keep` leaves the dashboard and the local
    GitHub up at the end until Ctrl-C.

    Raises:
        AcrouterError: something that the demo needs is missing; the message says what to do.
    """
    from bot.demo.stage import only_demo

    console = console or Console()
    folder = (load_settings().data_dir / "demo").absolute()
    with only_demo(folder):
        return _play(console, folder, model=model, keep=keep)


def _play(console: Console, folder: Path, *, model: str, keep: bool) -> int:
    from bot.demo.stage import set_stage
    from bot.demo.story import tell, unmet

    started = time.monotonic()
    with console.status("downloading the releases"):
        repositories = _repositories(folder)
    with (
        console.status("starting") as status,
        set_stage(
            folder, repositories, paid_model=model, progress=lambda message: status.update(escape(message))
        ) as stage,
    ):
        status.stop()
        bug = repositories[0].bug
        opening = render(
            "demo/opening.txt.j2",
            sandbox=stage.runtime.backend.describe(),
            project=bug.project,
            buggy=bug.buggy.version,
            fixed=bug.fixed.version,
            hub_url=stage.github.base_url,
            scripted=stage.scripted,
            models=list(stage.runtime.pool.names),
        )
        console.print(escape(opening), highlight=False)
        missing = unmet(tell(stage, console, *repositories), scripted=stage.scripted)
        for sentence in missing:
            console.print(f"[bold red]{escape(sentence)}[/]")
        console.print(f"That took {time.monotonic() - started:.0f} s.")
        console.print(escape(closing_words(scripted=stage.scripted, keep=keep)), soft_wrap=True, highlight=False)
        if keep:
            _wait(console, stage)
    return 1 if missing else 0


def _repositories(folder: Path) -> tuple[BugRepository, BugRepository]:
    settings = pip_index_settings()
    first, second = (
        materialise(find_bug(name), folder / "repositories", downloads=folder / "downloads", index=settings)
        for name in (FIRST, SECOND)
    )
    return first, second


def _wait(console: Console, stage: "Stage") -> None:
    console.print("Until Ctrl-C stay up:")
    console.print(f"- the dashboard, with this link once:  {stage.dashboard_link()}", soft_wrap=True, highlight=False)
    console.print(f"- the local GitHub:                    {stage.github.base_url}", soft_wrap=True, highlight=False)
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        console.print("Stopped.")

"""The README's first command, as a user runs it."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Played:
    """A demo that is over."""

    done: subprocess.CompletedProcess[str]
    state: Path


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Played:
    folder = tmp_path_factory.mktemp("demo")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ACROUTER_")}
    # A real installation's database must stay out of it.
    environment |= {"ACROUTER_DATA_DIR": str(folder), "DATABASE_URL": "postgresql://nobody@127.0.0.1:9/none"}
    done = subprocess.run(
        [sys.executable, "-m", "bot", "demo"],
        cwd=ROOT,
        env=environment | {"COLUMNS": "160"},
        capture_output=True,
        text=True,
        timeout=580,
        check=False,
    )
    return Played(done, folder / "demo" / "state")


@pytest.mark.docker
@pytest.mark.timeout(600)
def test_the_demo_ends_well_and_says_what_is_scripted(demo: Played) -> None:
    done = demo.done
    assert done.returncode == 0, done.stdout + done.stderr
    for words in (
        "The models are scripted",
        "scripted-medium (scripted)",
        "PR 2 is open.",
        "/demo/boltons/pull/2",
        "Pull request 2 is merged.",
        "What changed, and why",
        "scripted-large solved 1 of 1 similar task",
    ):
        assert words in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.docker
@pytest.mark.browser
@pytest.mark.node
@pytest.mark.timeout(600)
def test_the_overview_says_which_model_is_worth_its_money_and_why_the_last_task_went_there(
    demo: Played, tmp_path: Path
) -> None:
    from playwright.sync_api import expect

    from bot.dashboard.tokens import make_link_word
    from tests.support.browser import DESKTOP, PHONE, look_at, running_chromium, sign_in_by_link, watched
    from tests.support.dashboard_site import dashboard_site
    from tests.support.people import Person

    with (
        dashboard_site(
            tmp_path, demo.state / "acrouter.sqlite3", Person("ada"), models_file=demo.state / "models.yaml"
        ) as site,
        site.served() as url,
        running_chromium() as chromium,
    ):
        for look, size in (("desktop", DESKTOP), ("phone", PHONE)):
            context = chromium.new_context(viewport=size)
            with watched(context) as noted:
                page = noted.page
                sign_in_by_link(page, url, make_link_word(site.database))
                lead = page.get_by_role("region", name="In a sentence")
                expect(lead).to_contain_text(re.compile(r"scripted-large scripted: \$0\.\d+ a merged PR"))
                expect(lead).to_contain_text("scripted-medium: none of 1")
                expect(lead).to_contain_text("because scripted-large begins the plan with the highest expected reward")
                expect(lead).to_contain_text("scripted-large solved 1 of 1 similar task")
                expect(lead).to_contain_text("its patch is in PR 4")
                for name in ("overview", "models", "tasks", "tasks/1", "tasks/2/attempts/1/steps", "budgets", "queue"):
                    look_at(page, f"{url}/{name}", f"{name.replace('/', '-')}-demo-{look}")
            context.close()


def test_the_demo_refuses_a_second_one_in_its_folder(tmp_path: Path) -> None:
    from bot.demo.errors import DemoError
    from bot.demo.stage import only_demo

    with only_demo(tmp_path / "demo"), pytest.raises(DemoError, match="Another `acrouter demo` is running"):
        only_demo(tmp_path / "demo").__enter__()
    with only_demo(tmp_path / "demo"):
        pass

"""What strangers wrote is shown as text: HTML, scripts, ANSI, direction marks, and megabytes of them."""

import html
import re

import pytest

from tests.support.dashboard_site import Site
from tests.support.hostile import add_hostile_task


@pytest.fixture(scope="module")
def hostile(site: Site) -> int:
    """A task of which every text is hostile and as long as it can be."""
    return add_hostile_task(site.database)


PATHS = ("/tasks/{}", "/tasks/{}/attempts/1/steps", "/overview", "/tasks", "/models", "/queue", "/budgets")


@pytest.mark.parametrize("path", PATHS)
def test_a_page_shows_it_and_obeys_none_of_it(site: Site, hostile: int, path: str) -> None:
    page = site.as_local_admin().get(path.format(hostile)).text
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "<b>m</b>" not in page
    assert "\x1b" not in page
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", page), "nothing turns the order of letters around"
    assert "javascript:" not in re.sub(r"&[^;]*;", "", page)
    tags = re.findall(r"<[a-z][^<>]*>", page)
    outside_quotes = [re.sub(r'"[^"]*"', '""', tag) for tag in tags]
    assert not [tag for tag in outside_quotes if re.search(r"\son\w+\s*=", tag)]
    assert "49" not in re.findall(r"gnp\.exe(\d+)", page), "and no template is rendered twice"
    assert len(page) < 700_000, "ten megabytes are cut before they are sent"


def test_the_page_shows_the_text_itself(site: Site, hostile: int) -> None:
    page = html.unescape(site.as_local_admin().get(f"/tasks/{hostile}").text)
    assert "<script>alert(1)</script>" in page
    assert "red" in page


def test_what_changes_live_is_escaped_too(site: Site, hostile: int) -> None:
    from bot.dashboard.live import snapshot
    from bot.dashboard.roles import Role, Viewer
    from bot.dashboard.task_detail import task_detail

    board = site.app.state.board
    with site.database.reading() as session:
        task = task_detail(session, hostile, Viewer("x", Role.VIEWER, None), "https://github.com")
    assert task is not None
    shown = snapshot(board, task)
    assert "Step 1" in shown.html
    assert "<script>alert" not in shown.html
    assert len(shown.html) < 100_000


def test_a_spreadsheet_obeys_nothing(site: Site) -> None:
    from bot.dashboard.export import cell

    assert [cell(text) for text in ("=1+1", "+1", "-1", "@x", "\tx", "plain", -1)] == [
        *("'=1+1", "'+1", "'-1", "'@x", "'\tx", "plain", -1)
    ]
    assert site.as_local_admin().get("/export/tasks.csv").status_code == 200


def test_a_patch_is_a_file_and_no_page(site: Site, hostile: int) -> None:
    answer = site.as_local_admin().get(f"/tasks/{hostile}/attempts/1/patch")
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.headers["content-disposition"].startswith("attachment")

"""What strangers wrote is shown as text: HTML, scripts, ANSI, direction marks, and megabytes of them."""

import html
import re
from typing import Any

import pytest

from store.database import Database
from store.states import AttemptState, DeliveryState, TaskKind, TaskState, Trigger
from store.tables import Attempt, Decision, Delivery, History, Task, Verification
from tests.support.dashboard_site import Site

ATTACK = (
    '<script>alert(1)</script><img src=x onerror=alert(2)>" onfocus="alert(3)'
    "\x1b[31mred\x1b[0m\u202egnp.exe\u2066{{7*7}}"
)
LONG = ATTACK + "A" * 200_000
HUGE = ATTACK + "A" * 10_000_000


@pytest.fixture(scope="module")
def hostile(site: Site) -> int:
    """A task of which every text is hostile and as long as it can be."""
    return _hostile_task(site.database)


def _hostile_task(database: Database) -> int:
    with database.session() as session:
        task = Task(
            repository_id=100,
            kind=TaskKind.ISSUE,
            trigger=Trigger.LABEL,
            target="100/issues/666",
            target_number=666,
            requested_by=ATTACK[:100],
            title=LONG,
            text=HUGE,
            reason=ATTACK,
            dimension=ATTACK[:50],
            state=TaskState.ATTEMPTING,
            base_sha=ATTACK[:60],
            base_ref=ATTACK[:100],
            pr_number=1,
            pr_url="javascript:alert(4)",
        )
        session.add(task)
        session.flush()
        assert task.id is not None
        model = "<b>m</b>"
        line = {"model": model, "share": 1.0, "propensity": 1.0, "expected_score": 0.5, "expected_cost_usd": 0.1}
        near = {"key": ATTACK, "similarity": 0.9, "model": model, "score": 1.0, "cost_usd": 0.1, "final": True}
        near |= {"title": ATTACK, "link": ATTACK, "task_key": "task:1", "repository": "octo/shop"}
        vote = {"voter": ATTACK, "weight": 1.0, "shares": {model: 1.0}, "confidence": 1.0, "reason": ATTACK}
        decision = Decision(
            task_id=task.id,
            chosen=model,
            propensity=1.0,
            ranked=[line],
            votes=[vote],
            neighbours=[near],
            reasons=[ATTACK],
        )
        session.add(decision)
        session.flush()
        assert decision.id is not None
        step = {
            "role": "assistant",
            "content": LONG,
            "extra": {"actions": [{"command": LONG, "tool_call_id": "1"}], "cost": 0.1},
        }
        output = {"role": "tool", "tool_call_id": "1", "content": "", "extra": {"raw_output": HUGE, "returncode": 1}}
        attempt = Attempt(
            task_id=task.id,
            decision_id=decision.id,
            number=1,
            model=model,
            state=AttemptState.VERIFIED,
            exit_status="Submitted",
            error=LONG,
            steps=1,
            patch=f"diff --git a/x b/x\n+{HUGE}\n",
            trajectory={"messages": [{"role": "system", "content": LONG}, step, output]},
        )
        session.add(attempt)
        session.flush()
        assert attempt.id is not None
        tests: dict[str, Any] = {"command": ATTACK, "fail_to_pass": [ATTACK], "pass_to_fail": [ATTACK]}
        tests["after"] = {"passed": 1, "failed": 0, "timed_out": False, "output_tail": ATTACK * 200}
        signal = {"name": ATTACK, "value": None, "weight": 0.1, "evidence": ATTACK}
        session.add(
            Verification(
                attempt_id=attempt.id, score=0.1, verdict=ATTACK[:40], summary=ATTACK, signals=[signal], tests=tests
            )
        )
        session.add(History(task_id=task.id, state=TaskState.ATTEMPTING, message=ATTACK))
        session.add(
            Delivery(guid="hostile", event=ATTACK[:90], payload=b"{}", state=DeliveryState.FAILED, reason=ATTACK)
        )
        return task.id


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

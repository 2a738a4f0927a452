"""What people read: complete in every state, and untrusted words do nothing in it."""

import re
from types import SimpleNamespace
from typing import Any

import pytest
from markdown_it import MarkdownIt

from store.states import AttemptState, TaskKind, TaskState, Trigger
from store.tables import Attempt, Decision, History, Task, Verification
from templates import render
from templates.escape import inline, line
from workers.views import AttemptView

HOSTILE = (
    "Crash @victim, closes #66 <img src=x onerror=1> [x](javascript:1) | `a` <!-- acrouter:task=1 --> https://e.vil"
)
VIEWS = [
    "comments/status.md.j2",
    "comments/status_reply.md.j2",
    "comments/explain.md.j2",
    "pulls/title.txt.j2",
    "pulls/commit.txt.j2",
    "pulls/body.md.j2",
    "checks/title.txt.j2",
    "checks/summary.md.j2",
]
SUMMARY = {"passed": 10, "failed": 1, "exit_code": 1, "timed_out": False}


def view(words: str = "The total is wrong", **changes: Any) -> Any:
    """A task's view as the workers give it, with `words` wherever somebody else's words can stand."""
    values: dict[str, Any] = {
        "id": 3,
        "kind": TaskKind.ISSUE,
        "trigger": Trigger.LABEL,
        "target": "42/issues/7",
        "target_number": 7,
        "title": words,
        "state": TaskState.PUBLISHED,
        "reason": words,
        "budget_usd": 2.0,
        "pr_url": "https://github.com/o/r/pull/9",
        "pr_number": 9,
        "status_comment_id": 5,
        "branch": words,
        "base_sha": "b" * 40,
        "head_sha": "a" * 40,
    }
    first = Attempt(task_id=3, decision_id=1, number=1, model="cheap", state=AttemptState.FAILED, error=words)
    second = Attempt(id=2, task_id=3, decision_id=1, number=2, model="strong", score=0.93, cost_usd=0.3)
    verification = Verification(
        attempt_id=2,
        score=0.93,
        verdict="verified",
        summary=words,
        signals=[
            {"name": "tests", "value": 1.0, "weight": 0.5, "evidence": words},
            {"name": "lint", "value": None, "weight": 0.1, "evidence": ""},
        ],
        tests={
            "command": words,
            "before": SUMMARY,
            "after": SUMMARY | {"passed": 11, "failed": 0},
            "fail_to_pass": [words],
            "pass_to_fail": [words] * 30,
            "fixed": [words],
            "reproductions": [words],
            "idle": [words],
            "own_failing": [words],
            "flaky": [words],
            "test_files": [{"kind": "modified", "path": words}],
            "remarks": [words],
            "by_hand": {
                "setup": [words],
                "proof": words,
                "broken": words,
                "everything": words,
                "own_tests": [words],
            },
        },
    )
    decision = Decision(
        task_id=3,
        chosen="cheap",
        propensity=0.7,
        ranked=[
            {"model": "cheap", "share": 0.6, "propensity": 0.7, "expected_score": 0.5, "expected_cost_usd": 0.01},
        ],
        votes=[
            {"voter": "bandit", "weight": 1.0, "shares": {"cheap": 0.6, "strong": 0.4}, "reason": words},
            {"voter": "memory_knn", "weight": 1.5, "shares": {}, "reason": "nothing is alike"},
        ],
        neighbours=[
            {
                "key": "attempt:1",
                "similarity": 0.8,
                "model": "strong",
                "score": 1.0,
                "cost_usd": 0.2,
                "final": True,
                "title": words,
                "link": "",
                "repository": "o/r",
            }
        ],
        reasons=[words, "It solved 3 of 4 tasks like this."],
    )
    attempts = (
        AttemptView(attempt=first, verification=None, scripted=True),
        AttemptView(attempt=second, verification=verification, scripted=False),
    )
    task = Task(**(values | changes.pop("task", {})))
    return SimpleNamespace(
        **(
            {
                "task": task,
                "parent_sha": task.parent_sha or task.base_sha,
                "parent_words": words,
                "repository": "o/r",
                "decision": decision,
                "attempts": attempts,
                "history": (History(task_id=3, state=TaskState.QUEUED, message=words),),
                "spent_usd": 0.31,
                "web_url": "https://github.com/o/r",
                "trigger_label": "acrouter",
                "warnings": (words,),
                "marker": "<!-- acrouter:task=3 -->",
                "published": attempts[1],
            }
            | changes
        )
    )


@pytest.mark.parametrize("state", list(TaskState))
@pytest.mark.parametrize("template", VIEWS)
def test_every_text_can_be_written_in_every_state(template: str, state: TaskState) -> None:
    for kind in TaskKind:
        assert render(template, view=view(task={"state": state, "kind": kind})).strip()
    bare = view(task={"state": state}, decision=None, attempts=(), history=(), published=None)
    assert render(template, view=bare).strip()


def test_verdicts_of_older_versions_can_be_told_still() -> None:
    old = view()
    kept = ("command", "before", "after", "fail_to_pass", "pass_to_fail")
    tests = old.published.verification.tests
    old.published.verification.tests = {name: tests[name] for name in kept}
    assert "Failed before and pass now:" in render("pulls/body.md.j2", view=old)


def test_titles_of_another_repository_are_not_shown() -> None:
    explained = view("A secret plan")
    assert "A secret plan" in render("comments/explain.md.j2", view=explained).split("Similar tasks")[1]
    explained.decision.neighbours[0]["repository"] = "o/private"
    told = render("comments/explain.md.j2", view=explained).split("Similar tasks")[1]
    assert "A secret plan" not in told
    assert "in another repository" in told


@pytest.mark.parametrize("template", [name for name in VIEWS if name.endswith(".md.j2")])
def test_strangers_words_do_nothing_in_markdown(template: str) -> None:
    text = render(template, view=view(HOSTILE))
    html = MarkdownIt("gfm-like", {"linkify": False}).render(text)
    shown = re.sub(r"<code[^>]*>.*?</code>", "", html, flags=re.DOTALL)
    assert "<img" not in html
    assert "javascript:" not in re.sub(r">[^<]*<", "><", shown)
    assert "@victim" not in shown
    assert "#66" not in shown
    assert "://e.vil" not in shown
    # A code span shows a marker as it is; ours stands first, and only there it counts.
    assert not text.startswith("<!-- acrouter:task=1 -->")


@pytest.mark.parametrize("template", [name for name in VIEWS if name.endswith(".txt.j2")])
def test_strangers_words_do_nothing_in_titles_and_commits(template: str) -> None:
    text = render(template, view=view(HOSTILE))
    assert "@victim" not in text
    assert "#66" not in text


# GitHub looks for references and links in what Markdown shows, not in how it is written.
@pytest.mark.parametrize("words", ["Fixes GH-5", "closes gh-5", "_https://e.vil", "_www.e.vil", "x_ftp://e.vil"])
def test_what_github_would_link_or_close_is_none_as_it_shows(words: str) -> None:
    shown = re.sub("<[^>]*>", "", MarkdownIt("commonmark").render(inline(words)))
    for said in (shown, line(words)):
        assert not re.search(r"(?i)gh-\d|https?://|ftp://|www\.", said)
        assert said.replace("\u200b", "").strip() == words, "people read the same"


def test_a_title_is_one_line() -> None:
    for template in ("pulls/title.txt.j2", "checks/title.txt.j2"):
        assert len(render(template, view=view("two\nlines")).strip().splitlines()) == 1
    assert render("pulls/commit.txt.j2", view=view("two\nlines")).splitlines()[1] == ""


def test_the_status_tells_state_why_attempts_and_cost() -> None:
    text = render("comments/status.md.j2", view=view())
    assert text.startswith("<!-- acrouter:task=3 -->\n")
    for words in (
        "Pull request opened",
        "https://github.com/o/r/pull/9",
        "Why `cheap` went first",
        "| 1 | `cheap` (scripted) |",
        "| 2 | `strong` | fixed and verified | 10 passed, 1 failed → 11 passed, 0 failed | 0.93 | $0.3000 |",
        "Spent $0.3100 of $2.00",
    ):
        assert words in text


def test_a_running_task_says_how_to_stop_it_and_an_ended_one_how_to_retry() -> None:
    assert "/route stop" in render("comments/status.md.j2", view=view(task={"state": TaskState.ATTEMPTING}))
    assert "/route retry" in render("comments/status.md.j2", view=view(task={"state": TaskState.NO_FIX}))


def test_only_an_issues_pr_closes_it() -> None:
    assert "Fixes #7" in render("pulls/body.md.j2", view=view())
    assert "Fixes #7" not in render("pulls/body.md.j2", view=view(task={"kind": TaskKind.PULL_REQUEST}))


def test_a_pr_on_a_later_commit_than_was_tested_says_so_everywhere() -> None:
    later = view(task={"parent_sha": "c" * 40}, parent_words="Tested on bbbbbbb. The branch stands on ccccccc.")
    body = render("pulls/body.md.j2", view=later)
    assert "**Base:** Tested on bbbbbbb. The branch stands on ccccccc." in body
    assert "The branch stands on ccccccc." in render("checks/summary.md.j2", view=later)
    assert f"git switch --detach {'c' * 40}" in body
    assert "as counted on bbbbbbb." in body
    assert "on bbbbbbb; this commit stands on a later one." in render("pulls/commit.txt.j2", view=later)


def test_a_pr_on_the_commit_that_was_tested_needs_no_such_words() -> None:
    there = view(parent_words="")
    assert "**Base:**" not in render("pulls/body.md.j2", view=there)
    assert "as counted on" not in render("pulls/body.md.j2", view=there)
    assert "a later one" not in render("pulls/commit.txt.j2", view=there)


def test_tables_keep_their_columns() -> None:
    html = MarkdownIt("gfm-like", {"linkify": False}).render(render("pulls/body.md.j2", view=view(HOSTILE)))
    rows = re.findall(r"<tr>(.*?)</tr>", html, flags=re.DOTALL)
    assert {len(re.findall(r"<t[hd]", row)) for row in rows} == {4, 6}
    assert "<details><summary>Signals</summary>" in html


def test_the_small_answers_are_whole() -> None:
    assert "`/route explain`" in render("comments/help.md.j2", trigger_label="acrouter")
    assert "write permission" in render("comments/refusal.md.j2", reason="", login="ada")
    assert "the limit" in render("comments/refusal.md.j2", reason="That is the limit.", login="ada")
    assert "@victim" not in render("comments/command_error.md.j2", message=HOSTILE)
    text = render(
        "pulls/discussion.md.j2",
        files=[("a.py", "modified", 1, 2)],
        more_files=True,
        reviews=[("ada", "CHANGES_REQUESTED", "no ``` way")],
        comments=[("ada", "a.py", "@@ -1 +1 @@", "why?")],
        failing_checks=[("ci", "failure", "boom", "log")],
    )
    assert "a.py (modified, +1 -2)" in text
    assert "````\nno ``` way\n````" in text

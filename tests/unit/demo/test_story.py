"""When the demo's story held, and how it shows what happened."""

from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console, RenderableType

from bot.demo import show
from bot.demo.errors import StoryError
from bot.demo.follow import follow, wait_for_state
from bot.demo.story import Told, unmet
from store import migrations
from store.database import Database
from store.states import AttemptState, TaskKind, TaskState, Trigger
from store.tables import Attempt, Decision, History, Task, Verification
from workers.views import AttemptView, TaskView

HOSTILE = "[bold]not markup[/] \x1b[31mred"


def attempt(number: int, model: str, verdict: str) -> AttemptView:
    row = Attempt(id=number, task_id=1, decision_id=1, number=number, model=model, state=AttemptState.VERIFIED)
    counts = {"passed": 9, "failed": 0}
    tests: dict[str, Any] = {"before": counts, "after": counts, "fail_to_pass": ["a"], "pass_to_fail": []}
    return AttemptView(row, Verification(attempt_id=number, score=0.5, verdict=verdict, tests=tests), scripted=True)


def view(
    number: int,
    state: TaskState,
    chosen: str,
    attempts: list[AttemptView],
    neighbours: list[dict[str, Any]] | None = None,
) -> TaskView:
    task = Task(id=number, kind=TaskKind.ISSUE, trigger=Trigger.LABEL, target=f"1/issues/{number}", state=state)
    task.title, task.published_attempt_id = f"issue {number} {HOSTILE}", attempts[-1].attempt.id
    votes = [
        {"voter": "dimension_best", "weight": 1.0, "shares": {chosen: 1.0}, "reason": "cheap", "abstains": False},
        {"voter": "memory_knn", "weight": 1.5, "shares": {}, "reason": "knows nothing", "abstains": True},
    ]
    ranked = [{"model": chosen, "share": 1.0, "propensity": 1.0, "expected_score": 0.5, "expected_cost_usd": 0.01}]
    decision = Decision(task_id=number, chosen=chosen, propensity=1.0, votes=votes, ranked=ranked)
    decision.reasons, decision.neighbours = [f"because {HOSTILE}"], neighbours or []
    return TaskView(task, "demo/boltons", decision, tuple(attempts), (), 0.01, "", "acrouter")


@pytest.fixture
def told() -> Told:
    """A story that held: small failed, large was merged, and large is the first choice for the second issue."""
    tries = [attempt(1, "small", "unverified"), attempt(2, "large", "verified")]
    first = view(1, TaskState.MERGED, "small", tries)
    known = {"title": first.task.title, "final": True, "model": "large", "score": 1.0, "similarity": 0.8}
    second = view(2, TaskState.PUBLISHED, "large", [attempt(3, "large", "verified")], [known])
    return Told(first, second)


def shown(what: RenderableType) -> str:
    out = StringIO()
    Console(file=out, width=200, force_terminal=False).print(what)
    return out.getvalue()


def test_a_story_that_held_leaves_nothing_unmet(told: Told) -> None:
    assert unmet(told, scripted=True) == []


def test_a_second_choice_that_did_not_change_is_unmet(told: Told) -> None:
    assert told.second.decision is not None
    told.second.decision.chosen = "small"
    assert unmet(told, scripted=True) == ["The second issue was not given to the model whose pull request was merged."]
    assert unmet(told, scripted=False) == []  # a pool of one paid model has no other choice


def test_an_unverified_patch_and_an_unknown_neighbour_are_unmet(told: Told) -> None:
    published = told.second.published
    assert published is not None
    assert published.verification is not None
    assert told.second.decision is not None
    published.verification.verdict = "unverified"
    told.second.decision.neighbours = []
    assert len(unmet(told, scripted=True)) == 2


def test_a_pull_request_that_was_not_merged_is_unmet(told: Told) -> None:
    told.first.task.state = TaskState.PUBLISHED
    assert "The first issue's pull request was not merged." in unmet(told, scripted=True)


def test_a_decision_shows_votes_reasons_and_the_script_label(told: Told) -> None:
    assert told.first.decision is not None
    text = shown(show.decision_shown(told.first.decision, scripted=True))
    for words in ("small (scripted)", "dimension_best (weight 1.00)", "share by expected reward", "because"):
        assert words in text


def test_the_attempts_show_verdicts_and_tests(told: Told) -> None:
    text = shown(show.attempts_shown(told.first))
    for words in (
        "small (scripted)",
        "unverified",
        "large (scripted)",
        "verified",
        "passed 9 -> 9",
        "failed 0 -> 0",
        "1 proved",
    ):
        assert words in text


def test_untrusted_text_shows_itself_and_does_nothing(told: Told) -> None:
    text = shown(show.comparison_shown(told.first, told.second))
    assert "[bold]not" in text
    assert "\x1b" not in text
    assert "\x1b" not in shown(show.diff_shown(f"--- a/x\n+++ b/x\n+{HOSTILE}\n"))


def test_an_attempt_without_a_verification_is_shown_too(told: Told) -> None:
    lost = replace(told.first.attempts[0], verification=None)
    lost.attempt.exit_status = "ModelError"
    text = shown(show.attempts_shown(replace(told.first, attempts=(lost,))))
    assert "ModelError" in text


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """SQLite only: the demo runs on nothing else."""
    database = Database(f"sqlite:///{tmp_path / 'demo.sqlite3'}")
    migrations.upgrade(database)
    yield database
    database.dispose()


def test_the_history_is_printed_until_the_task_ends(database: Database) -> None:
    with database.session() as session:
        task = Task(kind=TaskKind.ISSUE, trigger=Trigger.LABEL, target="1/issues/7", target_number=7)
        task.state = TaskState.PUBLISHED
        session.add(task)
        session.flush()
        assert task.id is not None
        session.add(History(task_id=task.id, state=TaskState.PUBLISHED, message=f"The PR is open. {HOSTILE}"))
    out = StringIO()
    assert follow(Console(file=out, width=200), database, 7, timeout_s=5) == task.id
    assert "The PR is open. [bold]not markup[/] red" in out.getvalue()


def test_waiting_for_a_task_that_never_comes_ends(database: Database) -> None:
    with pytest.raises(StoryError, match="Issue 8: acrouter was not done"):
        follow(Console(file=StringIO()), database, 8, timeout_s=0.3)


def test_waiting_for_a_state_that_is_never_reached_ends(database: Database) -> None:
    with database.session() as session:
        task = Task(kind=TaskKind.ISSUE, trigger=Trigger.LABEL, target="1/issues/7")
        session.add(task)
    assert task.id is not None
    with pytest.raises(StoryError, match="is queued and not merged"):
        wait_for_state(database, task.id, TaskState.MERGED, timeout_s=0.3)

"""`acrouter replay` and `acrouter route` on a history whose truth is known."""

import json
import random
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bot.cli.main import app
from routing import Router
from routing.evidence_store import save, save_score
from routing.records import decision_columns
from store.database import Database
from store.migrations import upgrade
from store.states import AttemptState, OutcomeKind
from store.tables import Attempt, Decision, Outcome, Task, Verification
from tests.support.routing import START, make_evidence
from tests.support.rows import add_task

POOL = """
models:
  - {name: small, litellm_id: test/small, input_usd_per_mtok: 1.0, output_usd_per_mtok: 4.0}
  - {name: twin, litellm_id: test/twin, input_usd_per_mtok: 1.0, output_usd_per_mtok: 4.0}
"""
TASKS = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installation whose router chose between two models of one price, of which `twin` alone solves anything."""
    folder = tmp_path_factory.mktemp("history")
    write_history(folder, prs_are_open=False)
    return folder


def write_history(folder: Path, *, prs_are_open: bool) -> None:
    (folder / "models.yaml").write_text(POOL)
    database = Database(f"sqlite:///{folder / 'acrouter.sqlite3'}")
    upgrade(database)
    router = Router.from_files(folder / "models.yaml", seed=3)
    rng = random.Random(3)
    for number in range(TASKS):
        task = router.task(f"task:{number}", f"The parser loses comment {number}.", trigger="label")
        # Each model had the same chance, whatever the router would have thought.
        columns = decision_columns(router.decide(task, explore=False))
        columns["ranked"] = [line | {"propensity": 0.5} for line in columns["ranked"]]
        columns |= {"chosen": rng.choice(["small", "twin"]), "propensity": 0.5}
        chosen = columns["chosen"]
        at = START + timedelta(hours=number)
        score = 1.0 if chosen == "twin" else 0.0
        task_id = add_task(database, target=f"42/issues/{number}", target_number=number)
        with database.session() as session:
            row = Decision(task_id=task_id, at=at, **columns)
            session.add(row)
            session.flush()
            attempt = Attempt(
                task_id=task_id, decision_id=row.id or 0, number=1, model=chosen, score=score * 0.8,
                state=AttemptState.VERIFIED, finished_at=at + timedelta(minutes=5),
            )  # fmt: skip
            session.add(attempt)
            session.flush()
            evidence = make_evidence(
                f"attempt:{attempt.id}", chosen, score, task_key=task.key, cost_usd=0.1, final=True,
                minutes=60 * number + 30, dimension=task.dimension, text=task.text, repository="octo/tools",
            )  # fmt: skip
            evidence = replace(evidence, embedding=router.embed("", task.text), encoder=router.encoder.name)
            if prs_are_open:
                evidence = replace(evidence, final=False, at=at + timedelta(minutes=5))
            save(session, evidence, router.encoder)
            if prs_are_open:  # their CI was told of when all decisions had been made
                save_score(session, evidence.key, score=score, final=False, at=START + timedelta(hours=TASKS))
    database.engine.dispose()


@pytest.fixture
def installation(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("ACROUTER_DATA_DIR", str(folder))
    monkeypatch.setenv("ACROUTER_DATABASE_URL", f"sqlite:///{folder / 'acrouter.sqlite3'}")
    return folder


def replayed(folder: Path, config: str) -> dict[str, float]:
    (folder / "other.yaml").write_text(config)
    done = CliRunner().invoke(app, ["replay", "--config", "other.yaml", "--json"])
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)["result"]
    return {name: result[name]["value"] for name in ("logged", "ips", "snips", "dr")} | {
        "rounds": result["rounds"],
        "support": result["support"],
    }


def test_a_configuration_that_always_takes_the_right_model_is_seen_to_earn_more(installation: Path) -> None:
    right = replayed(installation, "deny: [small]")
    wrong = replayed(installation, "deny: [twin]")

    assert right["rounds"] == TASKS
    assert right["support"] == pytest.approx(1.0)
    # The truth: 1.0 - 0.1 x $0.1 with the one model, -0.01 with the other.
    assert right["snips"] == pytest.approx(0.99)
    assert wrong["snips"] == pytest.approx(-0.01)
    assert wrong["ips"] < right["logged"] < right["ips"]
    assert wrong["dr"] < right["logged"] < right["dr"]


def test_a_configuration_that_learns_earns_more_than_the_draws_that_were_logged(installation: Path) -> None:
    learning = replayed(installation, "exploration: false")

    assert learning["snips"] > learning["logged"] + 0.1
    # Nor does it know beforehand what it is going to learn.
    assert learning["snips"] < replayed(installation, "deny: [small]")["snips"] - 0.01


def test_what_the_verifier_said_is_known_at_once_while_the_prs_are_open(
    installation: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_history(tmp_path, prs_are_open=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ACROUTER_DATABASE_URL", f"sqlite:///{tmp_path / 'acrouter.sqlite3'}")
    learning = replayed(tmp_path, "exploration: false")

    assert learning["rounds"] == TASKS
    assert learning["snips"] > learning["logged"] + 0.1


def test_a_model_that_is_not_in_the_pool_is_named(installation: Path) -> None:
    (installation / "other.yaml").write_text("deny: [smal]")
    done = CliRunner().invoke(app, ["replay", "--config", "other.yaml"])

    assert done.exit_code != 0
    assert "smal" in str(done.exception)


def test_route_shows_votes_neighbours_and_plan(installation: Path) -> None:
    told = CliRunner().invoke(app, ["route", "The parser loses comment 7 again.", "--no-explore"])
    as_json = CliRunner().invoke(app, ["route", "The parser loses comment 7.", "--json", "--dimension", "algorithm"])

    assert told.exit_code == 0, told.output
    for words in ("twin for:", "60 attempts are known", "Votes", "memory_knn", "Plan", "Neighbours"):
        assert words in " ".join(told.output.split())
    shown = json.loads(as_json.stdout)
    assert shown["task"]["dimension"] == "algorithm"
    assert {line["model"] for line in shown["ranked"]} == {"small", "twin"}
    assert len(shown["neighbours"]) == 10


def test_route_reads_a_file_as_solve_does(installation: Path) -> None:
    (installation / "task.md").write_text("# The parser loses comment 7\n\nIt is gone.\n")
    by_file = json.loads(CliRunner().invoke(app, ["route", "--task", "task.md", "--json"]).stdout)
    by_words = ["route", "It is gone.", "--title", "The parser loses comment 7", "--json"]
    assert by_file["task"] == json.loads(CliRunner().invoke(app, by_words).stdout)["task"]


def test_route_says_what_is_wrong(installation: Path) -> None:
    (installation / "my task.md").write_text("The parser loses comment 7.")
    for arguments, told in (
        (["route", "  "], "empty"),
        (["route"], "or give --task FILE"),
        (["route", "my task.md"], "'my task.md' is a file. Give it as --task 'my task.md'"),
        (["route", "The parser", "--task", "my task.md"], "given twice"),
        (["route", "--task", "nowhere.md"], "nowhere.md is no file"),
        (["route", "x", "--dimension", "algorithms"], "Did you mean 'algorithm'"),
    ):
        assert told in str(CliRunner().invoke(app, arguments).exception)


def test_calibration_holds_the_verifiers_scores_against_what_became_of_the_prs(installation: Path) -> None:
    database = Database(f"sqlite:///{installation / 'calibration.sqlite3'}")
    upgrade(database)
    for number, (score, kind) in enumerate([(0.9, OutcomeKind.MERGED), (0.7, OutcomeKind.CLOSED), (0.8, None)]):
        task_id = add_task(database, target=f"42/issues/{number}", dimension="bug_fixing")
        with database.session() as session:
            decision = Decision(task_id=task_id, chosen="twin", propensity=1.0)
            session.add(decision)
            session.flush()
            attempt = Attempt(task_id=task_id, decision_id=decision.id or 0, number=1, model="twin", score=score)
            session.add(attempt)
            session.flush()
            signals: list[dict[str, Any]] = [{"name": "applies", "value": 1.0}, {"name": "examples", "value": None}]
            session.add(Verification(attempt_id=attempt.id or 0, score=score, verdict="verified", signals=signals))
            session.get_one(Task, task_id).published_attempt_id = attempt.id
            if kind is not None:
                session.add(Outcome(task_id=task_id, kind=kind, at=START))

    environment = {"ACROUTER_DATABASE_URL": f"sqlite:///{installation / 'calibration.sqlite3'}"}
    told = json.loads(CliRunner().invoke(app, ["calibration", "--json"], env=environment).stdout)
    shown = CliRunner().invoke(app, ["calibration"], env=environment).output

    assert told["all"]["count"] == 2  # the third PR is open
    assert told["all"]["brier"] == pytest.approx((0.1**2 + 0.7**2) / 2)
    assert list(told["signals"]) == ["applies"]
    assert told["dimensions"]["bug_fixing"]["count"] == 2
    assert "Reliability" in shown

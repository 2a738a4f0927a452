"""The logreg voter: trained from a profile, measured on held-out tasks, kept in a safe file."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from routing import Router
from routing.encoders.hashing import HashingEncoder
from routing.errors import TrainingError
from routing.logreg_file import HeldOut, LogregModel, load, save
from routing.training.examples import Example, Result, read_profile
from routing.training.logreg import train
from routing.types import Dimension
from routing.voters import VoterError
from routing.voters.optional import configured
from store.settings import Settings
from tests.support.routing import make_pool

SQL = "The SQL formatter drops comments of statement {n}: SELECT query parser"
PLOT = "The legend overlaps the axes of figure {n}: matplotlib colour plot"


@pytest.fixture(scope="module")
def examples() -> list[Example]:
    """`large` solves SQL tasks, `small` solves plots; `medium` was tried twice."""
    rng = random.Random(1)
    made = []
    for n in range(100):
        sql = n % 2 == 0
        noise = rng.random() < 0.1
        results = {
            "large": Result(float(sql != noise), 0.2),
            "small": Result(float(sql == noise), 0.01),
        }
        if n < 2:
            results["medium"] = Result(1.0, 0.1)
        text = (SQL if sql else PLOT).format(n=n)
        made.append(Example(f"t{n}", "", text, Dimension.BUG_FIXING, "python", "", results))
    return made


@pytest.fixture(scope="module")
def model(examples: list[Example]) -> LogregModel:
    return train(examples, HashingEncoder())


def settings_with(path: Path) -> Settings:
    return Settings(logreg_file=path, voter_weights={"logreg": 1.0})


def router_with(path: Path) -> Router:
    factories, weights = configured(settings_with(path), HashingEncoder(), make_pool())
    return Router(make_pool(), factories=factories, voter_weights=weights)


def test_it_beats_the_majority_on_tasks_that_it_has_not_seen(model: LogregModel) -> None:
    report = model.held_out

    assert model.models == ("large", "small")  # medium has too few attempts
    assert report.attempts == 50  # two models on a quarter of 100 tasks
    assert report.accuracy > 0.8 > report.majority_accuracy
    assert report.brier < 0.15 < report.majority_brier
    assert 0.4 < report.skill <= 1.0


def test_its_votes_follow_what_it_was_trained_on(model: LogregModel, tmp_path: Path) -> None:
    save(model, tmp_path / "logreg.npz")
    router = router_with(tmp_path / "logreg.npz")

    sql = router.decide(router.task("a", SQL.format(n=500)))
    plot = router.decide(router.task("b", PLOT.format(n=500)))

    assert (sql.chosen, plot.chosen) == ("large", "small")
    (vote,) = sql.votes
    assert set(vote.shares) == {"large", "small"}
    assert vote.confidence == pytest.approx(model.held_out.skill**0.5)


def test_noise_teaches_nothing_and_the_voter_says_so(tmp_path: Path) -> None:
    rng = random.Random(2)
    noise = [
        Example(
            f"t{n}", "", SQL.format(n=n), Dimension.BUG_FIXING, "", "",
            {m: Result(float(rng.random() < 0.5), 0.1) for m in ("small", "large")},
        )
        for n in range(80)
    ]  # fmt: skip
    trained = train(noise, HashingEncoder())
    useless = LogregModel(**(trained.__dict__ | {"held_out": HeldOut(10, 0.4, 0.5, 0.3, 0.25)}))
    save(useless, tmp_path / "logreg.npz")

    assert trained.held_out.skill < 0.2
    assert router_with(tmp_path / "logreg.npz").decide(make_router_task(SQL)).votes[0].abstains


def make_router_task(text: str) -> Any:
    return Router(make_pool()).task("t", text)


def test_a_file_for_another_encoder_or_pool_is_refused_by_name(model: LogregModel, tmp_path: Path) -> None:
    path = tmp_path / "logreg.npz"
    save(LogregModel(**(model.__dict__ | {"encoder": "minilm:1"})), path)
    with pytest.raises(VoterError, match=r"minilm:1.*hashing"):
        router_with(path)

    save(LogregModel(**(model.__dict__ | {"models": ("gone", "left")})), path)
    with pytest.raises(VoterError, match=r"knows no model of the pool.*gone, left"):
        router_with(path)


def test_a_damaged_or_foreign_file_is_an_error_that_names_it(model: LogregModel, tmp_path: Path) -> None:
    path = tmp_path / "logreg.npz"
    with pytest.raises(TrainingError, match="cannot be read"):
        load(path)
    for content in (b"", b"hello", b"PK\x03\x04broken"):
        path.write_bytes(content)
        with pytest.raises(TrainingError, match=r"logreg\.npz"):
            load(path)
    np.savez(path, meta=np.array([{"a": 1}], dtype=object), weights=np.ones(1), biases=np.ones(1))
    with pytest.raises(TrainingError, match="no file of the logreg voter"):  # a pickle is never opened
        load(path)
    save(LogregModel(**(model.__dict__ | {"weights": model.weights[:, 1:]})), path)
    with pytest.raises(TrainingError, match="damaged"):
        load(path)
    save(LogregModel(**(model.__dict__ | {"biases": np.array([np.nan, 0.0])})), path)
    with pytest.raises(TrainingError, match="not a number"):
        load(path)


def test_too_little_to_learn_from_says_what_there_is(examples: list[Example]) -> None:
    with pytest.raises(TrainingError, match=r"20 attempts.*large 10, small 10"):
        train(examples[10:20], HashingEncoder())
    with pytest.raises(TrainingError, match="none"):
        train([], HashingEncoder())


def test_a_profile_is_read_with_a_place_for_each_mistake(tmp_path: Path) -> None:
    path = tmp_path / "profile.jsonl"
    good = {"task": "a", "text": "pandas\u2028dataframe", "model": "small", "score": 1, "cost_usd": 0.1}
    given = [json.dumps(good | more, ensure_ascii=False) for more in ({}, {"model": "large", "score": 0})]
    path.write_text("\n".join(given) + "\n\n", encoding="utf-8-sig")

    (example,) = read_profile(path)
    assert example.results == {"small": Result(1.0, 0.1), "large": Result(0.0, 0.1)}
    assert example.dimension is Dimension.DATA_SCIENCE

    wrong = [good | {"score": 1.5}, good | {"modle": "x"}, good | {"cost_usd": -1}, good | {"dimension": "cooking"}]
    path.write_text("\n".join([*map(json.dumps, wrong), "{", "[1]"]))
    with pytest.raises(TrainingError) as caught:
        read_profile(path)
    lines = str(caught.value).splitlines()
    assert len(lines) == 6
    assert "line 1: score" in lines[0]
    assert "Did you mean 'model'?" in lines[1]
    assert "line 5: not valid JSON" in lines[4]

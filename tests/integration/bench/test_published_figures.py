"""The ruler reads the published data as those who published it: their reference figures come out."""

import os
from pathlib import Path

import numpy as np
import pytest

from bench.routing import peers
from bench.routing.coderouterbench import ID_SPLIT, read_id_stream, read_ood_stream
from bench.routing.contest import PUBLISHED_CHAIN
from bench.routing.hindsight import chain_rewards
from bench.routing.id_statistics import id_scores
from bench.routing.stream import Stream
from bench.routing.tracks import Track, play
from routing.pool import ModelPool
from routing.profile import load_profile, plain_name

FOLDER = "ACROUTER_BENCH_DATA"


@pytest.fixture(scope="module")
def data() -> Path:
    folder = Path(os.environ.get(FOLDER, ""))
    assert (folder / "models.json").is_file(), f"Set {FOLDER} to CodeRouterBench's folder, or leave this marker out."
    return folder


@pytest.fixture(scope="module")
def ood(data: Path) -> Stream:
    return read_ood_stream(data)


@pytest.mark.coderouterbench
@pytest.mark.parametrize(
    ("track", "chain", "avgperf", "cumreg", "usd"),
    [
        (Track.ONE_SHOT, ("gpt-5.4",), 64.20, 25.1, 18.3),
        (Track.ONE_SHOT, ("claude-opus-4-6",), 63.64, 43.7, 194.9),
        (Track.HONEST, ("Qwen3-Max", "claude-opus-4-6", "kimi-k2.5"), 71.6, 19.3, 90.9),
        (Track.LABEL, ("gpt-5.4", "claude-opus-4-6"), 77.84, 11.7, 125.1),
        (Track.LABEL, PUBLISHED_CHAIN, 73.30, 15.9, 86.63),
        (Track.LABEL, ("kimi-k2.5", "gpt-5.4", "claude-opus-4-6"), 78.4, 10.5, 122.7),
    ],
)
def test_chains_come_out_as_published(
    ood: Stream, track: Track, chain: tuple[str, ...], avgperf: float, cumreg: float, usd: float
) -> None:
    models = [ood.models.index(name) for name in chain]
    played = play(ood, range(len(ood)), peers.Chain(ood, models), track, 0)

    assert played.avgperf == pytest.approx(avgperf, abs=0.06)
    assert played.cumreg == pytest.approx(cumreg, abs=0.06)
    assert played.usd.sum() == pytest.approx(usd, abs=0.06)
    assert chain_rewards(ood, tuple(models), track)[0].sum() == pytest.approx(
        ood.rewards.max(axis=1).sum() - played.cumreg
    )


@pytest.mark.coderouterbench
def test_the_oracle_and_the_best_published_voter_come_out_as_published(ood: Stream, data: Path) -> None:
    oracle = play(ood, range(len(ood)), peers.oracle_player(ood), Track.ONE_SHOT, 0)
    assert (oracle.avgperf, oracle.cumreg) == pytest.approx((78.98, 0.0), abs=0.01)
    assert oracle.usd.sum() == pytest.approx(27.6, abs=0.06)
    assert int((~ood.ran).sum()) == 406

    one_shot = read_id_stream(data)
    voter = peers.Fixed(one_shot.votes["dimension_best"])
    played = play(one_shot, np.arange(len(one_shot)), voter, Track.ONE_SHOT, 0)
    assert (played.avgperf, played.cumreg) == pytest.approx((49.86, 297.2), abs=0.06)
    assert play(one_shot, np.arange(2919), peers.oracle_player(one_shot), Track.ONE_SHOT, 0).avgperf == pytest.approx(
        60.02, abs=0.01
    )


@pytest.mark.coderouterbench
def test_the_profile_holds_what_the_models_did_on_the_id_tasks(data: Path) -> None:
    published = {
        plain_name(entry.model): score.score
        for entry in load_profile().models
        for score in entry.scores
        if score.benchmark == ID_SPLIT
    }
    assert published == {plain_name(model): score for model, score in id_scores(read_id_stream(data)).items()}


@pytest.mark.coderouterbench
def test_the_id_stream_is_played_without_knowing_what_the_models_did_on_it(ood: Stream, data: Path) -> None:
    one_shot = read_id_stream(data)
    assert one_shot.pool.priors == ModelPool(ood.pool.models, without_benchmarks=(ID_SPLIT,)).priors
    assert all(ood.pool.priors[model] != one_shot.pool.priors[model] for model in one_shot.models)

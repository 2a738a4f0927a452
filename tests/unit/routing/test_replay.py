"""Off-policy estimates against a known truth, and against Open Bandit Pipeline's on the same rounds."""

from pathlib import Path

import pytest

from routing.errors import RoutingError
from routing.replay import Round, evaluate
from routing.replay_config import load_config
from store.errors import ConfigurationError
from store.settings import Settings
from tests.support.replay import synthetic_rounds


def test_the_estimates_are_those_of_open_bandit_pipeline() -> None:
    """obp 0.5.7 (InverseProbabilityWeighting, SelfNormalized..., DoublyRobust) on these very rounds."""
    result = evaluate(synthetic_rounds(400, 5)[0])

    assert result.ips.value == pytest.approx(0.5121875, abs=1e-9)
    assert result.snips.value == pytest.approx(0.6304654442877291, abs=1e-9)
    assert result.dr.value == pytest.approx(0.650620249602347, abs=1e-9)
    # Its bootstrap draws other samples: the intervals agree within their noise.
    assert (result.ips.low, result.ips.high) == pytest.approx((0.4037, 0.6385), abs=0.01)
    assert (result.dr.low, result.dr.high) == pytest.approx((0.5730, 0.7203), abs=0.01)


def test_the_intervals_cover_the_truth_as_often_as_they_say() -> None:
    covered = {"ips": 0, "snips": 0, "dr": 0}
    for seed in range(60):
        rounds, truth = synthetic_rounds(300, 100 + seed)
        result = evaluate(rounds, resamples=400)
        for name in covered:
            estimate = getattr(result, name)
            covered[name] += estimate.low <= truth <= estimate.high

    # 95% of 60 is 57; fewer than 50 would happen by chance less than once in a thousand.
    assert all(count >= 50 for count in covered.values()), covered


def test_the_same_policy_earns_what_was_logged() -> None:
    rounds, _ = synthetic_rounds(200, 3)
    same = [Round(r.propensities, r.chosen, r.reward, r.propensities, r.predicted) for r in rounds]
    result = evaluate(same)

    assert result.ips == result.snips == result.logged
    assert result.effective_rounds == pytest.approx(200)
    assert result.support == pytest.approx(1.0)


def test_what_was_never_tried_is_said_to_be_unsupported() -> None:
    rounds = [Round([1.0, 0.0], 0, 0.5, [0.2, 0.8], [0.5, 0.9])] * 10

    assert evaluate(rounds).support == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("one", "told"),
    [
        (Round([0.5, 0.6], 0, 1.0, [0.5, 0.5], [0.0, 0.0]), "'propensities' is no distribution"),
        (Round([0.5, 0.5], 0, 1.0, [1.5, -0.5], [0.0, 0.0]), "'other' is no distribution"),
        (Round([0.0, 1.0], 0, 1.0, [0.5, 0.5], [0.0, 0.0]), "probability 0"),
        (Round([0.5, 0.5], 2, 1.0, [0.5, 0.5], [0.0, 0.0]), "not in them"),
        (Round([0.5, 0.5], 0, float("nan"), [0.5, 0.5], [0.0, 0.0]), "not a number"),
    ],
)
def test_impossible_rounds_are_refused(one: Round, told: str) -> None:
    with pytest.raises(RoutingError, match=told):
        evaluate([one])
    with pytest.raises(RoutingError, match="no decision"):
        evaluate([])


def test_a_configuration_replaces_what_it_names_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "other.yaml"
    path.write_text("voter_weights: {bandit: 1.0}\nexploration: false\nreward_usd_weight: 0.5\n")
    config = load_config(path)
    settings = config.settings(Settings(memory_capacity=7))

    assert not config.exploration
    assert (settings.voter_weights, settings.reward_usd_weight) == ({"bandit": 1.0}, 0.5)
    assert (settings.memory_capacity, settings.reward_score_weight) == (7, 1.0)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("voter_weight: {}", "Did you mean 'voter_weights'"),
        ("voter_weights: {bandid: 1}", "Did you mean 'bandit'"),
        ("max_attempts: 0", "max_attempts"),
        ("[", "not valid YAML"),
        ("- 1", "valid dictionary"),
    ],
)
def test_a_wrong_configuration_names_the_mistake(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "other.yaml"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=told):
        load_config(path)


def test_a_configuration_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    path = tmp_path / "other.yaml"
    with pytest.raises(ConfigurationError, match=r"other\.yaml cannot be read: No such file or directory\.$"):
        load_config(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match=r"other\.yaml cannot be read: it is not a text in UTF-8\.$"):
        load_config(path)

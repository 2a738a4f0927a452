"""What the router learns of its voters and its verifier."""

import math
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routing.calibration import Calibration
from routing.false_passes import FalsePasses
from routing.logits import logit
from routing.namings import ALL_TOGETHER, NamingRecord
from routing.profile import Profile, load_profile, plain_name, published_ability
from routing.types import Dimension
from routing.voter_record import CEILING, FLOOR, VoterRecord
from tests.support.routing import START, make_evidence, make_task


def test_the_voter_that_is_nearer_gains_weight_within_bounds() -> None:
    record = VoterRecord()
    start = {"right": 1.0, "wrong": 1.0}
    weights = [record.weights(start, "bug_fixing")]
    for n in range(200):
        record.learn(make_evidence(f"e{n}", "small", 1.0, final=True, views={"right": 0.8, "wrong": 0.2}))
        weights.append(record.weights(start, "bug_fixing"))

    assert weights[0] == start
    assert weights[3]["right"] > 1.0 > weights[3]["wrong"]
    assert weights[-1] == {"right": CEILING, "wrong": FLOOR}
    elsewhere = record.weights({"right": 2.0, "wrong": 1.0}, "algorithm")
    assert elsewhere["right"] > 2.0


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 1), st.floats(0, 1), st.booleans()), max_size=8),
    st.randoms(use_true_random=False),
)
def test_records_have_no_order(raw: list[tuple[str, float, float, bool]], random: object) -> None:
    evidence = [
        make_evidence(
            key,
            ("small", "large")[n % 2],
            score,
            final=final,
            minutes=n,
            dimension=(Dimension.BUG_FIXING, Dimension.ALGORITHM, Dimension.TEST_GENERATION)[n % 3],
            views={"v": view, "w": 0.5},
            namings={"n": view - 0.5, "m": 0.5 - view / 2},
        )
        for n, (key, score, view, final) in enumerate(raw)
    ]
    shuffled = evidence * 2
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    found = []
    for series in (evidence, shuffled):
        record, namings, calibration = VoterRecord(), NamingRecord(), Calibration()
        for one in series:
            record.learn(one)
            namings.learn(one)
            calibration.learn(one)
        found.append(
            (
                record.weights({"v": 1.0, "w": 1.0}, "bug_fixing"),
                namings.additions({"n": 1.0, "m": 1.0}, {"n": {"small": 0.5, "large": -0.5}}, "bug_fixing"),
                calibration.passes(make_task(), ["small"], np.array([[0.0, 1.0]])).tolist(),
            )
        )
    assert found[0] == found[1]


def test_wrong_attempts_that_are_taken_back_or_replaced_leave_no_trace() -> None:
    learnt, fresh = FalsePasses(), FalsePasses()
    for n in range(20):
        learnt.describe(make_evidence(f"k{n}", "small", 0.0))
        learnt.put(f"k{n}", "small", START + timedelta(minutes=n), passed=True)
    for n in range(19):
        learnt.drop(f"k{n}")
    for one in (learnt, fresh):
        one.describe(make_evidence("k19", "large", 0.0))
        one.put("k19", "large", START, passed=False)
    models = ["small", "large"]

    assert learnt.rates(make_task(), models).tolist() == fresh.rates(make_task(), models).tolist()


def test_a_model_whose_right_patches_fail_the_verification_is_expected_to_fail_it_again() -> None:
    calibration = Calibration()
    for n in range(40):
        for model, passed in (("unlucky", 0.0), ("usual", 1.0)):
            said = make_evidence(f"{model}{n}", model, passed)
            calibration.learn(said)
            calibration.learn(make_evidence(said.key, model, 1.0, final=True, minutes=1))
    (unlucky,), (usual,) = calibration.passes(make_task(), ["unlucky", "usual"], np.ones((2, 1)))

    assert unlucky < 0.2
    assert usual > 0.9


def named(
    record: NamingRecord,
    shares: dict[str, float],
    model: str,
    score: float,
    n: int,
    dimension: Dimension = Dimension.BUG_FIXING,
) -> None:
    key = f"{dimension}:{model}:{n}"
    record.learn(make_evidence(key, model, score, final=True, namings=shares, dimension=dimension))


def test_a_naming_is_worth_what_it_has_been_worth() -> None:
    record = NamingRecord()
    configured = {"good": 1.0, "parrot": 1.0}
    assert sum(record.worth(configured).values()) == pytest.approx(ALL_TOGETHER)
    for n in range(200):
        right = n % 2 == 0
        shares = {"good": 0.5 if right else -0.5, "parrot": 0.5 if n % 4 < 2 else -0.5}
        named(record, shares, "small", float(right), n)
    worth = record.worth(configured)

    assert worth["good"] > 0.4
    assert worth["parrot"] < 0.1


def test_a_voter_that_names_the_best_model_of_each_dimension_is_believed_on_a_new_one() -> None:
    record = NamingRecord()
    configured = {"good": 1.0, "bad": 1.0}
    for place, kind in enumerate(list(Dimension)[:6]):
        best, worst = ("small", "large") if place % 2 else ("large", "small")
        for n in range(100):
            named(record, {"good": 0.5, "bad": -0.5}, best, float(n % 10 < 9), n, dimension=kind)
            named(record, {"good": -0.5, "bad": 0.5}, worst, float(n % 10 < 3), n, dimension=kind)
    says = {"good": {"small": 0.5, "large": -0.5}, "bad": {"small": -0.5, "large": 0.5}}
    new, known = (record.additions(configured, says, kind) for kind in (Dimension.TEST_GENERATION, Dimension.ALGORITHM))

    assert new["small"] - new["large"] > 0.15
    # There many attempts have shown what the models can do: what a voter always says is no news.
    assert known == pytest.approx({"small": 0.0, "large": 0.0}, abs=0.02)
    # A word that was wrong counts nothing; it does not speak against a model that would then never be tried.
    assert record.worth(configured)["bad"] == 0.0


def test_the_shipped_profile_is_read_and_each_number_has_its_source() -> None:
    profile = load_profile()
    assert all(str(score.source).startswith("https://") for model in profile.models for score in model.scores)
    assert plain_name("anthropic/claude-opus-4.6") == plain_name("claude-opus-4-6-20260205")
    assert published_ability("openai/gpt-5.4") == published_ability("gpt-5.4") is not None
    assert published_ability("nobody/knows-it") is None


@pytest.mark.parametrize(
    "served",
    [
        "anthropic/claude-opus-4.6",
        "claude-opus-4-6-20260205",
        "vertex_ai/claude-opus-4-6@20260205",
        "bedrock/anthropic.claude-opus-4-6-v1",
        "bedrock/us.anthropic.claude-opus-4-6-20260205-v1:0",
        "bedrock/us-gov.anthropic.claude-opus-4-6-v1:0",
        "vertex_ai/claude-opus-4-6@default",
        "openrouter/anthropic/claude-opus-4.6:thinking",
        "fireworks_ai/accounts/fireworks/models/claude-opus-4p6",
    ],
)
def test_a_model_is_known_whoever_serves_it(served: str) -> None:
    assert plain_name(served) == "claudeopus46"


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("gpt-5.4", "gpt54"),
        ("zai/glm-5.1", "glm51"),
        ("fireworks_ai/kimi-k2p5", "kimik25"),
        ("deepseek/deepseek-v3", "deepseekv3"),
        ("claude-3-5-sonnet-v2", "claude35sonnetv2"),
    ],
)
def test_a_model_s_own_version_stays_in_its_name(name: str, plain: str) -> None:
    assert plain_name(name) == plain


def test_a_profile_knows_a_model_by_its_other_names_too() -> None:
    assert published_ability("qwen3-coder-480b") == published_ability("fireworks_ai/qwen3-coder-480b-a35b-instruct")
    profile = load_profile()
    names = [plain_name(name) for model in profile.models for name in (model.model, *model.also)]
    assert len(set(names)) == len(names)


def test_a_benchmark_tells_the_same_of_models_whether_they_differ_by_little_or_by_much_on_it() -> None:
    def profile(**benchmarks: tuple[float, float]) -> Profile:
        models = [
            {
                "model": name,
                "scores": [
                    {"benchmark": benchmark, "score": scores[place], "source": "https://x.y"}
                    for benchmark, scores in benchmarks.items()
                ],
            }
            for place, name in enumerate(("good", "poor"))
        ]
        return Profile.model_validate({"read": "2026-11-30", "models": models})

    far, near = logit(0.8), (logit(0.76) - logit(0.74)) / 2
    typical = math.sqrt((far**2 + near**2) / 2)
    both = profile(a=(80.0, 20.0), b=(76.0, 74.0)).abilities()
    assert both == pytest.approx({"good": typical * 2 / 3, "poor": -typical * 2 / 3})
    turned = profile(a=(80.0, 20.0), b=(74.0, 76.0)).abilities()
    assert turned == pytest.approx({"good": 0.0, "poor": 0.0})
    # Where all are alike nothing is said of anybody.
    assert profile(a=(50.0, 50.0)).abilities() == {}
    assert profile(a=(80.0, 20.0), b=(50.0, 50.0)).abilities() == profile(a=(80.0, 20.0)).abilities()


def test_a_benchmark_that_is_left_out_of_the_profile_says_nothing() -> None:
    profile = load_profile()
    every = {score.benchmark for model in profile.models for score in model.scores}
    left = profile.abilities(every - {"SWE-bench Pro"})
    assert set(left) == {
        plain_name(model.model)
        for model in profile.models
        for score in model.scores
        if score.benchmark == "SWE-bench Pro"
    }
    assert profile.abilities(every) == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"read": "x", "models": []}', "models"),
        (
            '{"read": "x", "models": [{"model": "m", "scores": [{"benchmark": "b", "score": 130, "source": "https://x.y"}]}]}',
            "score",
        ),
        ('{"read": "x", "models": [{"model": "m", "scores": [{"benchmark": "b", "score": 30}]}]}', "source"),
        (
            '{"read": "x", "models": [{"model": "m-1", "also": ["x/M.1"], '
            '"scores": [{"benchmark": "b", "score": 30, "source": "https://x.y"}]}]}',
            "'x/M.1' is there twice",
        ),
        ("[]", "must be an object"),
        ("{", "is not JSON"),
    ],
)
def test_a_wrong_profile_is_named(tmp_path: "object", text: str, words: str) -> None:
    from pathlib import Path

    from routing.errors import ProfileError

    path = Path(str(tmp_path)) / "profile.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ProfileError, match=words):
        load_profile(path)

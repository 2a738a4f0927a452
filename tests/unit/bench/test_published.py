"""How well the shipped profile foretells a benchmark."""

import pytest

from bench.routing import published
from bench.routing.published import foretold
from routing.profile import Profile, load_profile


def profile(**scores: dict[str, float]) -> Profile:
    models = [
        {
            "model": model,
            "scores": [{"benchmark": name, "score": score, "source": "https://x.y"} for name, score in known.items()],
        }
        for model, known in scores.items()
    ]
    return Profile.model_validate({"read": "2026-11-30", "models": models})


def test_a_benchmark_that_says_the_same_as_the_others_is_foretold_whole() -> None:
    found = foretold(
        profile(
            good={"a": 80.0, "b": 90.0}, fair={"a": 50.0, "b": 50.0}, poor={"a": 20.0, "b": 10.0}, other={"a": 50.0}
        )
    )
    assert found["a"].correlation == pytest.approx(1.0)
    # Of the fourth model `a` alone knows something.
    assert len(found["a"].scored) == 3
    assert found["a"].scored.sum() == pytest.approx(0.0)


def test_a_benchmark_that_contradicts_the_others_is_not() -> None:
    found = foretold(profile(good={"a": 80.0, "b": 10.0}, fair={"a": 50.0, "b": 50.0}, poor={"a": 20.0, "b": 90.0}))
    assert found["b"].correlation == pytest.approx(-1.0)


def test_two_models_tell_nothing_of_a_benchmark() -> None:
    assert foretold(profile(good={"a": 80.0, "b": 90.0}, poor={"a": 20.0, "b": 10.0})) == {}


def test_each_shipped_benchmark_is_foretold_by_the_others(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    found = foretold(load_profile())
    assert min(one.correlation for one in found.values()) > 0.5
    published.main()
    printed = capsys.readouterr().out
    assert [benchmark for benchmark in (*found, "all") if benchmark not in printed] == []

"""The policy voter before a real vLLM, and an adapter that `acrouter train policy` made. One start for all of it."""

import json
import subprocess
from pathlib import Path

import pytest

from routing import Router, RoutingDecision
from routing.encoders.hashing import HashingEncoder
from routing.pool import load_pool
from routing.types import Vote
from routing.voters.optional import configured
from store.settings import Settings
from tests.support.routing import make_evidence
from tests.support.vllm import MODEL, PYTHON, ROOT, environment, require_vllm, vllm_server

POOL = """
models:
  - {name: small, litellm_id: test/small, input_usd_per_mtok: 0.1, output_usd_per_mtok: 0.4}
  - {name: medium, litellm_id: test/medium, input_usd_per_mtok: 1.0, output_usd_per_mtok: 4.0}
  - {name: large, litellm_id: test/large, input_usd_per_mtok: 5.0, output_usd_per_mtok: 25.0}
"""
LEARNT = (
    "SQL comments are lost by the formatter.",
    "SQL: BEGIN TRANSACTION is split.",
    "The README names a wrong option.",
    "The guide's example is outdated.",
)
ASKED = ("SQL hints vanish from the query.", "parse_date('') raises IndexError.")


@pytest.mark.vllm
@pytest.mark.timeout(900)
def test_a_real_model_votes_and_a_trained_adapter_changes_its_answers(tmp_path: Path) -> None:
    require_vllm()
    (tmp_path / "models.yaml").write_text(POOL)
    adapter = train(tmp_path)

    with vllm_server({"router": adapter}, tmp_path / "vllm.log") as url:
        base, adapted = (make_router(tmp_path, url, model) for model in ("policy", "router"))
        for router in (base, adapted):
            router.observe(make_evidence("a", "medium", 0.0, text=ASKED[0]))
        before = [vote_on(base, text) for text in ASKED]
        after = [vote_on(adapted, text) for text in ASKED]

        for vote in (*before, *after):
            assert set(vote.shares) == {"small", "medium", "large"}, vote.reason
            assert sum(vote.shares.values()) == pytest.approx(1.0)
            assert 1 / 3 <= vote.confidence <= 1.0
        # In the profile `large` alone solves anything; the model as it came prefers another.
        assert {favourite(vote) for vote in after} == {"large"}
        assert {favourite(vote) for vote in before} != {"large"}
        assert all(a.shares["large"] > b.shares["large"] + 0.2 for a, b in zip(after, before, strict=True))

        unknown = vote_on(make_router(tmp_path, url, "no-such-model"), ASKED[0])
        assert unknown.abstains
        assert "status 404" in unknown.reason

    gone = vote_on(base, ASKED[0])
    assert gone.abstains
    assert "cannot be reached" in gone.reason


def train(folder: Path) -> Path:
    """Run `acrouter train policy` where PEFT is, and return the adapter's folder."""
    lines = [
        {"task": text, "text": text, "dimension": "bug_fixing", "model": model, "score": score, "cost_usd": cost}
        for text in LEARNT
        for model, score, cost in (("small", 0.0, 0.01), ("large", 1.0, 0.2))
    ]
    profile, adapter = folder / "profile.jsonl", folder / "adapter"
    profile.write_text("\n".join(map(json.dumps, lines)))
    done = subprocess.run(
        [
            str(PYTHON), "-m", "bot", "train", "policy", "--base", str(MODEL), "--out", str(adapter),
            "--profile", str(profile), "--steps", "8", "--batch", "1", "--learning-rate", "0.003",
        ],
        cwd=ROOT, env=environment() | {"ACROUTER_MODELS_FILE": str(folder / "models.yaml")},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "4 tasks to learn from" in done.stderr
    return adapter


def make_router(folder: Path, url: str, model: str) -> Router:
    # Two busy cores are no GPU: the deadline of production would be passed now and then.
    settings = Settings(
        policy_url=url, policy_model=model, policy_deadline_s=60, voter_weights={"policy_llm": 1.0, "memory_knn": 1.0}
    )
    pool = load_pool(folder / "models.yaml")
    factories, weights = configured(settings, HashingEncoder(), pool)
    return Router(pool, factories=factories, voter_weights=weights)


def vote_on(router: Router, text: str) -> Vote:
    decision: RoutingDecision = router.decide(router.task("t", text, trigger="ci"))
    return next(vote for vote in decision.votes if vote.voter == "policy_llm")


def favourite(vote: Vote) -> str:
    return max(vote.shares, key=lambda name: vote.shares[name])

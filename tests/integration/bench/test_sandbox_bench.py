"""`acrouter bench sandbox` in its shortest form. Verdicts on real bugs have tests of their own."""

import uuid
from pathlib import Path

import pytest

from bench.sandbox.checkouts import measure_checkout
from bench.sandbox.command import disagreement
from bench.sandbox.leaks import count_leaks
from bench.sandbox.speed import compare
from bench.sandbox.verdicts import Judged
from sandbox.docker_backend import DockerBackend
from sandbox.results import Verdict
from sandbox.types import Limits, SandboxSpec


@pytest.mark.docker
def test_both_are_timed_and_nothing_is_left_behind(tmp_path: Path) -> None:
    instance = f"tests-{uuid.uuid4().hex}"
    backend = DockerBackend("acrouter/base:1", Limits(disk_mb=256), instance=instance)
    spec = SandboxSpec(backend.ensure_base(), {"task": "bench", "owner": "tests"}, Limits(disk_mb=256))
    speed = compare(backend, spec, rounds=1, commands=1)
    assert {name: (len(times.start), len(times.execute)) for name, times in speed.items()} == {
        "ours": (1, 1),
        "mini": (1, 1),
    }
    leaks = count_leaks(backend, instance, spec, one_by_one=1, at_once=2)
    assert {"containers", "processes", "descriptors", "threads"} <= leaks.keys()
    assert not any(leaks.values())
    checkout = measure_checkout(backend, spec, tmp_path, megabytes=2, rounds=1)
    assert all(seconds > 0 for times in checkout.values() for seconds in times)


@pytest.mark.parametrize(
    ("verdict", "truth", "agrees"),
    [
        ("verified", "verified", True),
        ("unverified", "verified", False),
        ("verified", "unverified", False),
        ("breaking", "unverified", False),
        ("rejected", "unverified", True),
        ("unverified", "breaking", False),
        ("empty", "empty", True),
    ],
)
def test_a_verdict_agrees_only_with_what_is_true(verdict: Verdict, truth: Verdict, agrees: bool) -> None:
    assert Judged("bug", "kind", verdict, 0.5, truth).agrees is agrees


def test_a_disagreement_is_told_with_both_sides_and_why() -> None:
    judged = Judged("bug", "kind", "verified", 0.9, "unverified", "One test passes.")
    assert disagreement(judged) == (
        "bug, kind: the verdict is verified (0.90), by running it is unverified. One test passes."
    )

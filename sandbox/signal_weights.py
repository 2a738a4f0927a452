"""How much each signal counts in the verifier's score, by the kind of task: u = sum of w[dimension][k] x signal[k].

The weights of a dimension sum to 1. They were set by hand, from what a signal can tell of that kind of work, before any
outcome was seen; `acrouter calibration` says how well the score predicts what becomes of the PRs. Signals that could
not be had are left out, and the others' weights grow in proportion. `sandbox.verdict` says how those of BESIDE enter.
"""

from collections.abc import Mapping

BESIDE = frozenset({"judge", "agreement"})
"""Not facts about the patch, but what models say of it and do beside it: they move the facts' score a little."""

_BASE: Mapping[str, float] = {
    "applies": 0.03,
    "no_regressions": 0.25,
    "target_fixed": 0.25,
    "reproduction": 0.20,
    "examples": 0.10,
    "diff_size": 0.03,
    "diff_place": 0.03,
    "tests_not_weakened": 0.04,
    "files_parse": 0.03,
    # What a reviewer would stop at: each is rare, and says little by itself.
    "few_files": 0.01,
    "text_only": 0.01,
    "modes_kept": 0.01,
    "locks_kept": 0.01,
    # It may be talked into anything by the patch that it reads.
    "judge": 0.05,
    "agreement": 0.04,
}

# What differs from _BASE, before the weights are brought to a sum of 1 again.
_DIFFERENCES: Mapping[str, Mapping[str, float]] = {
    # A failing test that passes, or a test that fails without the fix, is the bug's own proof.
    "bug_fixing": {"target_fixed": 0.30, "reproduction": 0.25},
    # New behaviour has no failing test before; the patch's own tests and the text's examples are what there is.
    "code_generation": {"target_fixed": 0.15, "reproduction": 0.30, "examples": 0.20},
    "algorithm": {"target_fixed": 0.15, "reproduction": 0.25, "examples": 0.30},
    "code_completion": {"target_fixed": 0.20, "reproduction": 0.25, "examples": 0.20},
    # Nothing may change: what passed must pass, by tests that are as strong as before.
    "code_refactoring": {
        "no_regressions": 0.50, "target_fixed": 0.05, "reproduction": 0.05, "tests_not_weakened": 0.15,
        "diff_size": 0.02,
    },
    # The tests are the work: they must not replace stronger ones.
    "test_generation": {"tests_not_weakened": 0.20, "target_fixed": 0.05, "reproduction": 0.20, "diff_place": 0.01},
    # Comments and documentation: hardly anything can be proven, and a small diff that breaks nothing is most of it.
    "code_understanding": {
        "no_regressions": 0.35, "target_fixed": 0.05, "reproduction": 0.05, "diff_size": 0.10, "diff_place": 0.10,
        "files_parse": 0.10,
    },
    "data_science": {"examples": 0.15},
    "multi_language": {"examples": 0.15, "diff_size": 0.01},
    # Work across a repository is large by nature and seldom where the text points.
    "agentic_programming": {"no_regressions": 0.35, "diff_size": 0.01, "diff_place": 0.01},
}  # fmt: skip


def _normalised(weights: Mapping[str, float]) -> dict[str, float]:
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


BASE: Mapping[str, float] = _normalised(_BASE)

WEIGHTS: Mapping[str, Mapping[str, float]] = {
    dimension: _normalised({**_BASE, **changes}) for dimension, changes in _DIFFERENCES.items()
}


def weights_for(dimension: str) -> Mapping[str, float]:
    """Return the weights of a dimension by signal; `BASE` for one that is not known."""
    return WEIGHTS.get(dimension, BASE)

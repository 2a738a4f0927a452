"""From what became of a PR to the score of the attempt behind it."""

from collections.abc import Collection

from store.states import OutcomeKind

MERGED = 1.0
CHANGES_REQUESTED_FACTOR = 0.8
"""A reviewer asked for changes before the merge: the patch was right in the end, with help."""
FOREIGN_COMMITS_FACTOR = 0.7
"""Somebody had to finish the work with commits of their own."""

CI_PASSED_WEIGHT = 0.25
"""A green CI moves a provisional score this far towards 1."""
CI_FAILED_CAP = 0.25
"""A red CI lets no provisional score be higher; fixed by a later push, both outcomes are there and the cap holds."""


def final_score(outcomes: Collection[OutcomeKind]) -> float | None:
    """Return the final score in [0, 1] of a task's published attempt, or None while its PR is open.

    Pure and order-free: the same outcomes in any order, or twice, give the same score. A revert counts as 0, and so
    does a PR that was closed and never merged. A PR that was closed, opened again and merged counts as merged. CI
    alone is never final.
    """
    kinds = set(outcomes)
    if OutcomeKind.REVERTED in kinds:
        return 0.0
    if OutcomeKind.MERGED in kinds:
        score = MERGED
        if OutcomeKind.CHANGES_REQUESTED in kinds:
            score *= CHANGES_REQUESTED_FACTOR
        if OutcomeKind.FOREIGN_COMMITS in kinds:
            score *= FOREIGN_COMMITS_FACTOR
        return score
    return 0.0 if OutcomeKind.CLOSED in kinds else None


def provisional_score(verifier_score: float, outcomes: Collection[OutcomeKind]) -> float:
    """Return the verifier's score in [0, 1] adjusted by what is known while the PR is open. Order-free."""
    kinds = set(outcomes)
    score = verifier_score
    if OutcomeKind.CI_PASSED in kinds:
        score += CI_PASSED_WEIGHT * (1.0 - score)
    if OutcomeKind.CHANGES_REQUESTED in kinds:
        score *= CHANGES_REQUESTED_FACTOR
    if OutcomeKind.FOREIGN_COMMITS in kinds:
        score *= FOREIGN_COMMITS_FACTOR
    if OutcomeKind.CI_FAILED in kinds:
        score = min(score, CI_FAILED_CAP)
    return score

"""Evidence by key: the same key replaces, whatever the order of arrival."""

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from routing.errors import RoutingError
from routing.types import Dimension, Evidence
from store.suggest import did_you_mean

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PROVISIONAL_WEIGHT = 0.7
"""What a verifier's score counts against an outcome's 1.0: tests that pass are not yet a merge."""


_DIMENSIONS = tuple(dimension.value for dimension in Dimension)


def weight(evidence: Evidence) -> float:
    """Return how much an evidence counts, in (0, 1]."""
    return 1.0 if evidence.final else PROVISIONAL_WEIGHT


def precedence(evidence: Evidence) -> tuple[Any, ...]:
    """Return what orders two evidences of one key: the greater one stays.

    A final score beats a provisional one. Then what the database wrote last wins, since each outcome's score is
    computed there of all that are known (`routing.evidence_store.save_score`), and then the later one. At the same
    moment the lower score wins: more is known of a PR by a request for changes than without it. The rest only makes the
    order total; of two that are else the same, the one that knows more stays.
    """
    return (
        evidence.final,
        evidence.revision,
        evidence.at,
        -evidence.score,
        -evidence.cost_usd,
        evidence.model,
        str(evidence.dimension),
        evidence.task_key,
        EPOCH - evidence.made_at,
        evidence.verifier_score is not None,
        bool(evidence.views),
        bool(evidence.namings),
    )


def completed(evidence: Evidence, other: Evidence) -> Evidence:
    """Return `evidence` with what only another one of its key knows: the time of the attempt, what was said before it.

    Scores, costs and all else are its own.
    """
    verified = evidence.verifier_score
    if verified is None and evidence.final and other.final:
        verified = other.verifier_score
    found = replace(
        evidence,
        attempted_at=min(evidence.made_at, other.made_at),
        views=evidence.views or other.views,
        namings=evidence.namings or other.namings,
        verifier_score=verified,
    )
    return evidence if precedence(found) == precedence(evidence) else found


def is_within(value: Any, least: float, most: float) -> bool:
    """Say whether something is a finite number within these bounds; whatever users hand in is no error here."""
    try:
        return bool(math.isfinite(value) and least <= value <= most)
    except (TypeError, OverflowError):
        return False


def check_dimension(dimension: str, whose: str) -> None:
    """Check that a dimension is known: what is not typed gives any string.

    Raises:
        RoutingError: it is not; the message begins with `whose` and suggests the closest.
    """
    if dimension not in _DIMENSIONS:
        raise RoutingError(
            f"{whose}: unknown dimension '{dimension}'.{did_you_mean(str(dimension), _DIMENSIONS)} "
            f"Known: {', '.join(_DIMENSIONS)}."
        )


def validate(evidence: Evidence) -> None:
    """Check the numbers of an evidence.

    Raises:
        RoutingError: the key is empty, the dimension is unknown, the score is outside [0, 1], the cost is negative or
            unknown, or a time has no zone.
    """
    if not evidence.key:
        raise RoutingError("evidence: the key is empty. Give each attempt a key of its own.")
    check_dimension(evidence.dimension, f"evidence '{evidence.key}'")
    if not is_within(evidence.score, 0.0, 1.0):
        raise RoutingError(f"evidence '{evidence.key}': the score is {evidence.score}; it must be within [0, 1].")
    if not is_within(evidence.cost_usd, 0.0, math.inf):
        raise RoutingError(f"evidence '{evidence.key}': the cost is {evidence.cost_usd}; it must be 0 or more USD.")
    for name, moment in (("at", evidence.at), ("attempted_at", evidence.made_at)):
        if not isinstance(moment, datetime) or moment.tzinfo is None:
            raise RoutingError(f"evidence '{evidence.key}': '{name}' has no time zone. Use an aware datetime.")
    for voter, view in evidence.views.items():
        if not is_within(view, 0.0, 1.0):
            raise RoutingError(f"evidence '{evidence.key}': the view of '{voter}' is {view}; it must be within [0, 1].")
    for voter, share in evidence.namings.items():
        if not is_within(share, -1.0, 1.0):
            raise RoutingError(
                f"evidence '{evidence.key}': the share of '{voter}' is {share}; it must be within [-1, 1]."
            )
    said = evidence.verifier_score
    if said is not None and not is_within(said, 0.0, 1.0):
        raise RoutingError(f"evidence '{evidence.key}': the verifier's score is {said}; it must be within [0, 1].")


class EvidenceBook:
    """The evidence that stands, one for each key, without its text and vector."""

    def __init__(self) -> None:
        self._standing: dict[str, Evidence] = {}

    def __len__(self) -> int:
        return len(self._standing)

    def put(self, evidence: Evidence) -> tuple[bool, Evidence | None]:
        """Take in valid evidence and return (does it stand now, the one that it replaced)."""
        old = self._standing.get(evidence.key)
        if old is not None and precedence(old) >= precedence(evidence):
            return False, None
        self._standing[evidence.key] = evidence.bare
        return True, old

    def __contains__(self, key: str) -> bool:
        return key in self._standing

    def get(self, key: str) -> Evidence:
        return self._standing[key]

    def remove(self, key: str) -> Evidence | None:
        """Forget a key and return what stood there."""
        return self._standing.pop(key, None)

    def count(self, evidence: Evidence, add: Callable[[Evidence, int], None]) -> None:
        """Take in evidence for a sum: `add` gets what it replaces with -1 and itself with 1, if it stands now."""
        stands, old = self.put(evidence)
        if not stands:
            return
        if old is not None:
            add(old, -1)
        add(evidence, 1)

    def uncount(self, key: str, add: Callable[[Evidence, int], None]) -> None:
        """Forget a key for a sum: `add` gets what stood there with -1."""
        if (old := self.remove(key)) is not None:
            add(old, -1)

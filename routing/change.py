"""Whether a model got better: a provider may put a stronger one behind the same name.

A change is a suffix of its scores that is better than what came before by more than chance would give. Only changes for
the better are looked for: a model that got worse shows it by itself, since a model that is chosen is seen, while one
that is not chosen would never be forgiven what it once could not do.
"""

import numpy as np

from routing.logits import Floats

_SHORTEST = 8
_MOST = 200
_Z = 3.5
"""Standard errors by which a suffix must be better: over a few dozen suffixes chance gives this about once in 500."""


def changed_at(scores: Floats) -> int:
    """Return the position from which a model's (N,) scores, in the order of time, are to be believed; 0: all of them."""
    count = len(scores)
    if count < 2 * _SHORTEST:
        return 0
    starts = np.arange(max(_SHORTEST, count - _MOST), count - _SHORTEST + 1)
    sums = np.cumsum(scores)
    before = sums[starts - 1] / starts
    length = count - starts
    after = (sums[-1] - sums[starts - 1]) / length
    pooled = np.clip(sums[-1] / count, 0.05, 0.95)
    errors = np.sqrt(pooled * (1 - pooled) * (1 / starts + 1 / length))
    z = (after - before) / errors
    best = int(np.argmax(z))
    return int(starts[best]) if z[best] > _Z else 0

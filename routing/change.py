"""Whether a model got better: a provider may put a stronger one behind the same name.

A change is a suffix of its attempts that turned out better, over what was expected on their tasks, than those before it
by more than chance would give. Only changes for the better are looked for: a model that got worse shows it by itself,
since a model that is chosen is seen, while one that is not chosen would never be forgiven what it once could not do.
"""

import numpy as np

from routing.logits import Floats

_SHORTEST = 8
_MOST = 200
_Z = 3.5
"""Standard errors by which a suffix must be better: over a few dozen suffixes chance gives this about once in 500."""


def changed_at(surprises: Floats) -> int:
    """Return the position from which a model's attempts are to be believed; 0: all of them.

    Args:
        surprises: (N,) scores less what was expected, in the order of time.
    """
    count = len(surprises)
    if count < 2 * _SHORTEST:
        return 0
    starts = np.arange(max(_SHORTEST, count - _MOST), count - _SHORTEST + 1)
    sums = np.cumsum(surprises)
    length = count - starts
    before, after = sums[starts - 1] / starts, (sums[-1] - sums[starts - 1]) / length
    deviation = max(float(surprises.std()), 0.2)
    z = (after - before) / (deviation * np.sqrt(1 / starts + 1 / length))
    best = int(np.argmax(z))
    return int(starts[best]) if z[best] > _Z else 0

"""US dollars as whole micro-dollars."""

import math

MICROS = 1_000_000


def to_micros(usd: float) -> int:
    """Return US dollars as whole micro-dollars, rounded up: a cap errs on the safe side."""
    return math.ceil(round(usd * MICROS, 6))


def to_usd(micros: int) -> float:
    return micros / MICROS

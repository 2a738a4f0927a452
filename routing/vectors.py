"""What a vector must be before anything is compared with it."""

import math

import numpy as np

from routing.errors import EncoderError
from routing.types import Encoder, Vector

_TOLERANCE = 1e-3


def is_empty(vector: Vector) -> bool:
    """Say whether a text had no word to compare: such a vector is like nothing."""
    return not vector.any()


def check_length(vector: Vector, whose: str) -> None:
    """Check that a vector, unless it is empty, is a unit vector: else similarities mean nothing.

    Raises:
        EncoderError: it is none; the message begins with `whose`.
    """
    length = math.sqrt(vector @ vector)
    if length != 0.0 and not abs(length - 1.0) < _TOLERANCE:
        raise EncoderError(f"{whose}: the embedding has length {length:.3f}; it must be 1.")


def encoded(encoder: Encoder, words: str) -> Vector:
    """Return an encoder's vector of a text.

    Raises:
        EncoderError: the encoder cannot be used, or gave something else than one unit vector of its dimensions.
    """
    rows = np.asarray(encoder.encode([words]), dtype=np.float32)
    if rows.shape != (1, encoder.dimensions):
        raise EncoderError(
            f"encoder '{encoder.name}': gave an array of shape {rows.shape} for one text; it must be "
            f"(1, {encoder.dimensions})."
        )
    vector: Vector = rows[0]
    check_length(vector, f"encoder '{encoder.name}'")
    return vector

"""`hashing`: a lexical encoder that needs numpy alone, no download and no model.

Feature hashing (Weinberger et al. 2009, arXiv 0902.2206): words, parts of identifiers and character 4-grams are
hashed to 512 signed dimensions. Counts are damped (1 + log tf), the words of issue templates are left out, and rows
have length 1. Two reports that share an error, a function name or a subject come close; paraphrases do not: `minilm`
sees those.
"""

import math
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from routing.encoders.stopwords import STOP_WORDS
from routing.types import Vector

DIMENSIONS = 512
THRESHOLD = 0.25
_WORD = re.compile(r"[^\W\d_]+(?:_[^\W_]+)*|[A-Za-z_]\w*")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+")
_URL = re.compile(r"\b(?:https?|ftp)://\S+")
_GRAM = 4
_GRAM_WEIGHT = 0.25
"""A word has several 4-grams: together they count about as much as the word itself."""
_LONGEST_WORD = 40  # longer "words" are hashes and base64


class HashingEncoder:
    """Signed feature hashing of words and character 4-grams."""

    name = "hashing:1"
    dimensions = DIMENSIONS
    threshold = THRESHOLD

    def encode(self, texts: Sequence[str]) -> Vector:
        rows = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        for position, text in enumerate(texts):
            row = rows[position]
            for feature, weight in _features(text).items():
                digest = zlib.crc32(feature.encode())
                # The lowest bits choose the place, the highest the sign: collisions cancel out on average.
                row[digest % DIMENSIONS] += weight if digest >> 31 else -weight
            length = float(np.linalg.norm(row))
            if length > 0:
                rows[position] = row / length
        return rows


def _features(text: str) -> dict[str, float]:
    counts = Counter(_words(_URL.sub(" ", text)))
    features: dict[str, float] = {}
    grams: Counter[str] = Counter()
    for word, count in counts.items():
        features[f"w {word}"] = 1.0 + math.log(count)
        padded = f" {word} "
        for start in range(len(padded) - _GRAM + 1):
            grams[padded[start : start + _GRAM]] += count
    for gram, count in grams.items():
        features[f"g {gram}"] = _GRAM_WEIGHT * (1.0 + math.log(count))
    return features


def _words(text: str) -> Iterator[str]:
    for token in _WORD.findall(text):
        parts = [part.lower() for part in _PARTS.findall(token)]
        if len(parts) > 1 and len(token) <= _LONGEST_WORD:
            yield token.lower()  # an identifier counts as a whole too
        for part in parts:
            if 2 < len(part) <= _LONGEST_WORD and part not in STOP_WORDS:
                yield part

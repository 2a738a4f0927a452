"""`api:MODEL`: an embedding API through LiteLLM, which reads the provider's usual environment variable for its key."""

from collections.abc import Sequence

import numpy as np

from routing.errors import EncoderError
from routing.types import Vector

THRESHOLD = 0.5
_BATCH = 64
_TIMEOUT_S = 30.0


class ApiEncoder:
    """Embeddings of a provider. The first call tells `dimensions`."""

    threshold = THRESHOLD

    def __init__(self, model: str, *, api_base: str | None = None, api_key: str | None = None) -> None:
        self.name = f"api:{model}"
        self._model = model
        self._api_base = api_base
        self._api_key = api_key
        self._dimensions: int | None = None

    @property
    def dimensions(self) -> int:
        """Length of a vector; asks the API once where it is not known yet."""
        if self._dimensions is None:
            self.encode(["dimensions"])
        assert self._dimensions is not None
        return self._dimensions

    def encode(self, texts: Sequence[str]) -> Vector:
        """Return a (len(texts), dimensions) float32 array of unit rows.

        Raises:
            EncoderError: the API cannot be used, or answered with another number or length of vectors.
        """
        if not texts:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        parts = [self._ask(texts[start : start + _BATCH]) for start in range(0, len(texts), _BATCH)]
        return np.concatenate(parts)

    def _ask(self, texts: Sequence[str]) -> Vector:
        import litellm

        try:
            # Providers refuse an empty text.
            answer = litellm.embedding(
                model=self._model,
                input=[text.strip() or "-" for text in texts],
                api_base=self._api_base,
                api_key=self._api_key,
                timeout=_TIMEOUT_S,
            )
            items = sorted(answer.data, key=lambda item: int(item["index"]))
            vectors = np.array([item["embedding"] for item in items], dtype=np.float32)
        except Exception as error:
            raise EncoderError(f"encoder '{self.name}': the API cannot be used ({type(error).__name__}).") from error
        if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
            raise EncoderError(f"encoder '{self.name}': asked for {len(texts)} vectors, got an array {vectors.shape}.")
        if self._dimensions not in (None, vectors.shape[1]):
            raise EncoderError(
                f"encoder '{self.name}': vectors have {vectors.shape[1]} dimensions now, {self._dimensions} before."
            )
        self._dimensions = int(vectors.shape[1])
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        normalised: Vector = (vectors / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
        return normalised

"""Semantic encoders by sentence-transformers, in this process."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from routing.errors import EncoderError
from routing.types import Vector

THRESHOLD = 0.5
_INSTALL = "Run in acrouter's folder: .venv/bin/pip install '.[embeddings]'"
_MAX_TOKENS = 512
_BATCH = 16


class SentenceEncoder:
    """A sentence-transformers model. `dimensions` are the model's own."""

    threshold = THRESHOLD

    def __init__(self, name: str, model: str, *, max_tokens: int = _MAX_TOKENS, offline: bool = False) -> None:
        """Load `model`, a name on the Hugging Face hub or a folder.

        Raises:
            EncoderError: sentence-transformers is not installed, or the model cannot be loaded.
        """
        self.name = name
        self._model = _load(name, model, offline=offline)
        # Shorter limits cut most issues; longer ones than the model has positions for would fail.
        positions = getattr(getattr(self._model[0], "auto_model", None), "config", None)
        longest = getattr(positions, "max_position_embeddings", max_tokens)
        self._model.max_seq_length = min(max_tokens, longest)
        self.dimensions = int(self._model.encode(["x"], show_progress_bar=False).shape[1])

    def encode(self, texts: Sequence[str]) -> Vector:
        if not texts:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        vectors = self._model.encode(
            list(texts), batch_size=_BATCH, normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False
        )
        return np.ascontiguousarray(vectors, dtype=np.float32)


def _load(name: str, model: str, *, offline: bool) -> Any:
    with _offline_hub() if offline else contextlib.nullcontext():
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise EncoderError(f"encoder '{name}': sentence-transformers cannot be imported. {_INSTALL}") from error
        try:
            return SentenceTransformer(model, device="cpu" if offline else None, local_files_only=offline)
        except Exception as error:
            raise EncoderError(f"encoder '{name}': '{model}' cannot be loaded: {error}") from error


@contextlib.contextmanager
def _offline_hub() -> Iterator[None]:
    """The hub is asked for nothing while the model loads: its library reads the variable when first imported."""
    before = os.environ.get("HF_HUB_OFFLINE")
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["HF_HUB_OFFLINE"]
        else:
            os.environ["HF_HUB_OFFLINE"] = before

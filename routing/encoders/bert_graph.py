"""A BERT encoder (Devlin et al. 2018, arXiv 1810.04805) as an ONNX graph, made from its weights; no torch.

Inputs `ids` and `mask` (int64, texts x tokens), output `hidden` (float32, texts x tokens x width).
"""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_OPSET = 20  # the first with Gelu


def bert_graph(folder: Path) -> Any:
    """Return the `onnx.ModelProto` of the model in a folder (config.json, model.safetensors).

    Raises:
        KeyError, ValueError, OSError: the folder holds no such model.
    """
    from safetensors.numpy import load_file

    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    if config["model_type"] != "bert" or config["hidden_act"] != "gelu":
        raise ValueError(f"{folder} holds no BERT with GELU")
    return _Builder(load_file(folder / "model.safetensors"), config).model()


class _Builder:
    """Adds nodes one after the other; each method returns the name of what it made."""

    def __init__(self, weights: dict[str, NDArray[Any]], config: dict[str, Any]) -> None:
        self._weights = {name.removeprefix("bert."): value for name, value in weights.items()}
        self._config = config
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}

    def model(self) -> Any:
        from onnx import TensorProto, checker, helper

        hidden = self._embeddings()
        # Padding is kept out of the attention: a score that low leaves nothing after the softmax.
        real = self._node("Cast", "mask", to=TensorProto.FLOAT)
        wide = self._node("Unsqueeze", real, self._constant("mask_axes", np.array([1, 2], dtype=np.int64)))
        masked = self._node("Sub", self._constant("one", np.float32(1.0)), wide)
        bias = self._node("Mul", masked, self._constant("low", np.float32(-1e9)))
        for layer in range(self._config["num_hidden_layers"]):
            hidden = self._layer(hidden, bias, f"encoder.layer.{layer}")
        self._nodes.append(helper.make_node("Identity", [hidden], ["hidden"]))
        shape = ["texts", "tokens"]
        graph = helper.make_graph(
            self._nodes,
            "bert",
            [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name in ("ids", "mask")],
            [helper.make_tensor_value_info("hidden", TensorProto.FLOAT, [*shape, self._config["hidden_size"]])],
            list(self._constants.values()),
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=9)
        checker.check_model(model)
        return model

    def _embeddings(self) -> str:
        words = self._node("Gather", self._weight("embeddings.word_embeddings.weight"), "ids")
        length = self._node("Gather", self._node("Shape", "ids"), self._constant("second", np.array(1, dtype=np.int64)))
        zero, step = (self._constant(name, np.array(n, dtype=np.int64)) for name, n in (("zero", 0), ("step", 1)))
        places = self._node("Range", zero, length, step)
        positions = self._node("Gather", self._weight("embeddings.position_embeddings.weight"), places)
        kind = self._constant("kind", self._weights["embeddings.token_type_embeddings.weight"][0].astype(np.float32))
        return self._norm(self._node("Add", self._node("Add", words, positions), kind), "embeddings.LayerNorm")

    def _layer(self, hidden: str, bias: str, name: str) -> str:
        heads = self._config["num_attention_heads"]
        size = self._config["hidden_size"] // heads
        split = self._constant("split", np.array([0, 0, heads, size], dtype=np.int64))
        query, key, value = (
            self._node(
                "Transpose",
                self._node("Reshape", self._linear(hidden, f"{name}.attention.self.{part}"), split),
                perm=[0, 2, 3, 1] if part == "key" else [0, 2, 1, 3],
            )
            for part in ("query", "key", "value")
        )
        scale = self._constant("scale", np.float32(1 / math.sqrt(size)))
        scores = self._node("Add", self._node("Mul", self._node("MatMul", query, key), scale), bias)
        context = self._node("MatMul", self._node("Softmax", scores, axis=-1), value)
        joined = self._constant("join", np.array([0, 0, heads * size], dtype=np.int64))
        context = self._node("Reshape", self._node("Transpose", context, perm=[0, 2, 1, 3]), joined)
        attended = self._linear(context, f"{name}.attention.output.dense")
        hidden = self._norm(self._node("Add", attended, hidden), f"{name}.attention.output.LayerNorm")
        inner = self._node("Gelu", self._linear(hidden, f"{name}.intermediate.dense"))
        return self._norm(
            self._node("Add", self._linear(inner, f"{name}.output.dense"), hidden), f"{name}.output.LayerNorm"
        )

    def _linear(self, hidden: str, name: str) -> str:
        matrix = np.ascontiguousarray(self._weights[f"{name}.weight"].T.astype(np.float32))
        product = self._node("MatMul", hidden, self._constant(f"{name}.weight", matrix))
        return self._node("Add", product, self._weight(f"{name}.bias"))

    def _norm(self, hidden: str, name: str) -> str:
        scale, shift = self._weight(f"{name}.weight"), self._weight(f"{name}.bias")
        return self._node("LayerNormalization", hidden, scale, shift, axis=-1, epsilon=self._config["layer_norm_eps"])

    def _weight(self, name: str) -> str:
        return self._constant(name, self._weights[name].astype(np.float32))

    def _constant(self, name: str, value: Any) -> str:
        from onnx import numpy_helper

        if name not in self._constants:
            self._constants[name] = numpy_helper.from_array(np.asarray(value), name)
        return name

    def _node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        from onnx import helper

        made = f"n{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, list(inputs), [made], **attributes))
        return made

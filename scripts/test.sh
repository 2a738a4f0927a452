#!/bin/sh
# Runs the checks and all the tests. Services (Postgres, Redis, GitHub's doubles) are started by the tests themselves;
# a Docker daemon is started here when none answers.
set -eu
cd "$(dirname "$0")/.."
# The tests start acrouter's processes a hundred times: what is compiled once is kept.
unset PYTHONDONTWRITEBYTECODE

if ! docker info >/dev/null 2>&1; then
    if [ "$(id -u)" -ne 0 ]; then
        echo "acrouter: the tests need a Docker daemon that this user may use; start one (sudo systemctl start docker)." >&2
        exit 1
    fi
    echo "acrouter: starting dockerd" >&2
    mkdir -p .cache
    dockerd >.cache/dockerd.log 2>&1 &
    tries=0
    until docker info >/dev/null 2>&1; do
        tries=$((tries + 1))
        if [ "$tries" -gt 60 ]; then
            echo "acrouter: dockerd did not start; its log ends with:" >&2
            tail -n 20 .cache/dockerd.log >&2
            exit 1
        fi
        sleep 0.5
    done
fi

checks() {
    .venv/bin/ruff check . && .venv/bin/ruff format --check . && .venv/bin/mypy && .venv/bin/lint-imports
}

checking=""
if [ "$#" -eq 0 ]; then
    # Beside what follows: they use one processor.
    mkdir -p .cache
    checks >.cache/checks.log 2>&1 &
    checking=$!
    # Four processes for two processors: half of what a story takes is waiting. A file is told by one process, so that
    # what its stories share is made once; tests/conftest.py puts the longest files first.
    set -- tests -n 4 --dist loadfile --no-loadscope-reorder --durations=25
    if [ -z "${ACROUTER_BENCH_DATA:-}" ]; then
        # The data belong to the paper's authors and are not part of this repository.
        echo "acrouter: without ACROUTER_BENCH_DATA (the folder of CodeRouterBench) its published figures are not checked" >&2
        set -- "$@" -m "not coderouterbench"
    fi
fi
# Made here, once: the first stories would wait for it, each in a process of its own.
.venv/bin/python -c 'from bot.assembly import make_backend; from store.settings import Settings; make_backend(Settings(sandbox="docker")).ensure_base()'

if [ -n "$checking" ]; then
    # Once, so that the processes that share the tests do not each compile them all at the same time.
    .venv/bin/pytest tests --collect-only -qq >/dev/null || true
    failed=""
    wait "$checking" || failed=yes
    cat .cache/checks.log
    [ -z "$failed" ] || exit 1
fi
exec .venv/bin/pytest "$@"

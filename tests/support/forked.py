"""acrouter's processes, forked from one that has imported all that they need.

The stories start dozens, and each would spend seconds of a processor on imports. That `python -m bot` works
as it stands, the stories of `test_embedded.py`, `test_solve.py` and `test_label_to_merge.py` show.
"""

import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import cache
from multiprocessing.context import ForkServerContext
from pathlib import Path

PRELOADED = (
    "bot.cli.serve",
    "bot.assembly",
    "bot.dashboard.digest",
    "bot.handle",
    "bot.sweep",
    "bot.web",
    "celery.apps.beat",
    "celery.apps.worker",
    "celery.concurrency.thread",
    "routing",
    "sandbox.agent.loop",
    "sandbox.backends",
    "uvicorn",
    "workers.brain",
    "workers.caches",
    "workers.celery_app",
    "workers.jobs",
    "workers.runtime",
)
"""With what they import in turn: all that `acrouter up`, `worker` and `beat` need."""


class ForkedProcess:
    """One command of acrouter's; what `subprocess.Popen` has of the same name does the same."""

    def __init__(self, arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], log: Path) -> None:
        self._process = _context().Process(target=_run, args=(arguments, cwd, dict(env), log))
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid
        while self.poll() is None and os.getpgid(self.pid) != self.pid:
            time.sleep(0.001)

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self._process.name, timeout or 0)
        return self._process.exitcode

    def terminate(self) -> None:
        self._process.terminate()


@cache
def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*PRELOADED])
    return context


def _run(arguments: Sequence[str], cwd: Path, env: Mapping[str, str], log: Path) -> None:
    os.setsid()
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.argv = ["acrouter", *arguments]
    # The process that forks says nothing of a module that it could not import.
    assert not (missing := set(PRELOADED).difference(sys.modules)), missing
    from bot.cli import main

    main()

"""Sandboxes by bubblewrap, for machines without a Docker daemon."""

import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from sandbox import bubblewrap_command, setup_run
from sandbox.bubblewrap_command import BubblewrapPlan
from sandbox.bubblewrap_line import BubblewrapLine
from sandbox.errors import ImageError, SandboxError, SandboxUnavailable
from sandbox.eviction import DRAFT_PREFIX, evict_folders
from sandbox.guest_channel import GuestChannel, GuestGone
from sandbox.guest_sandbox import AGENT_UID, VENV, GuestSandbox
from sandbox.host_network import CERTIFICATES, certificate_bundle, setup_environment
from sandbox.images import build
from sandbox.named_locks import NamedLocks
from sandbox.types import CacheLimits, Limits, Progress, SandboxSpec, SetupPlan

_START_TIMEOUT_S = 30.0
_BASE_TIMEOUT_S = 300.0
_END_TIMEOUT_S = 5.0
_FIRST_UID = 1_900_000_000
"""As root, each sandbox gets a user id of its own from here on: no person's, and no other sandbox's to count."""


class BubblewrapBackend:
    """Fulfils `sandbox.types.Backend`. Environments and records of running sandboxes live below `data_dir`."""

    name: Literal["docker", "bubblewrap"] = "bubblewrap"

    def __init__(self, data_dir: Path, limits: Limits) -> None:
        self._folder = data_dir.absolute() / "bubblewrap"
        self._limits = limits
        self._environments = NamedLocks()

    def describe(self) -> str:
        return (
            "bubblewrap: no network, no files of this machine but its programs (/usr and Python, read-only), and a "
            "process namespace of its own. Given up against Docker: memory is limited for each process and not for "
            "all together, the processor is not limited, there is no system call filter, and the programs and "
            "versions are this machine's own."
        )

    def check(self) -> None:
        """Start a sandbox and end it.

        Raises:
            SandboxUnavailable: bubblewrap is not there or may not do this here.
        """
        bubblewrap_command.version()
        self._require_folder()
        try:
            self._start(self._plan(self._limits, venv=None), {})[1].close()
        except (SandboxError, OSError) as error:
            raise bubblewrap_command.unavailable(str(error)) from error

    def _require_folder(self) -> None:
        """Nothing of bubblewrap's own is wrong where its folder cannot be written."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self._folder):
                pass
        except OSError as error:
            raise SandboxUnavailable(
                f"bubblewrap is there, but its folder {self._folder} cannot be written: {error.strerror}. Set "
                "ACROUTER_DATA_DIR to a folder that can be."
            ) from error

    def ensure_base(self, progress: Progress | None = None) -> str:
        python = f"{bubblewrap_command.sys_python()} {sys.version}"
        name = "base-" + hashlib.sha256(f"{build.recipe()} {python}".encode()).hexdigest()[:16]
        with self._environments.held(name):
            if not self.environment(name).exists():
                if progress:
                    progress("Making the sandbox's Python environment")
                with self._new_environment(name) as venv:
                    self._make_base(venv)
        return name

    def ensure_image(self, image: str) -> str:
        raise ImageError(f"bubblewrap has no images, so there is no {image!r}. Docker has.")

    ensure_service_image = ensure_image

    def prepare(self, archive: Path, plan: SetupPlan, *, timeout_s: float, labels: Mapping[str, str]) -> str:
        """Set up once: a copy of the base environment in a folder of its own, with the plan's commands run on it."""
        base = self.ensure_base()
        if not plan.commands:
            return base
        name = f"env-{plan.cache_key}"
        with self._environments.held(name):
            if self.environment(name).exists():
                os.utime(self.environment(name))
            else:
                with self._new_environment(name) as venv:
                    shutil.copytree(self.environment(base), venv, symlinks=True, dirs_exist_ok=True)
                    with self._set_up(venv, labels) as sandbox:
                        setup_run.run(sandbox, archive, plan, timeout_s=timeout_s, limits=self._limits)
        return name

    def identify(self, image: str) -> str:
        return image  # named after all that is in it

    def open(self, spec: SandboxSpec) -> GuestSandbox:
        if spec.services:
            raise ImageError("bubblewrap starts no services. Docker does.")
        venv = self.environment(spec.image)
        if Path(spec.image).name != spec.image or not venv.is_dir():
            raise ImageError(f"There is no environment {spec.image!r}; `prepare` makes them.")
        os.utime(venv)  # it is used
        return self._start(self._plan(spec.limits, venv=venv), spec.labels)[1]

    def environment(self, name: str) -> Path:
        """Return the folder of an environment, there or not."""
        return self._folder / "environments" / name

    def remove_leftovers(self, running_tasks: Callable[[], frozenset[str]]) -> int:
        found = self._records()
        keep = running_tasks()
        return sum(self._end(path, record) for path, record in found if _is_left_over(record, keep))

    def remove_task(self, task: str) -> int:
        return sum(self._end(path, record) for path, record in self._records() if record.get("task") == task)

    def evict(self, limits: CacheLimits) -> int:
        return evict_folders(self.environment("env-").parent, "env-*", limits, self._environments)

    @contextlib.contextmanager
    def _new_environment(self, name: str) -> Iterator[Path]:
        """Yield a folder that becomes the environment `name` at once and whole, or not at all."""
        parent = self.environment(name).parent
        parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=DRAFT_PREFIX, dir=parent))
        try:
            yield draft
            draft.chmod(0o755)
            with contextlib.suppress(OSError):  # another process was first
                draft.rename(self.environment(name))
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    def _make_base(self, venv: Path) -> None:
        with self._set_up(venv, {}) as sandbox:
            bundle = certificate_bundle()
            environment = setup_environment(certificates=bundle is not None)
            if bundle is not None:
                sandbox.put_file(CERTIFICATES, bundle)
            command = (
                f"{bubblewrap_command.sys_python()} -m venv {VENV} && python -m pip install --no-cache-dir --upgrade "
            )
            result = sandbox.execute(
                command + " ".join(build.requirements()), timeout_s=_BASE_TIMEOUT_S, environment=environment
            )
        if result.exit_code:
            raise ImageError(f"The sandbox's Python environment cannot be made:\n{result.output[-3000:]}")

    @contextlib.contextmanager
    def _set_up(self, venv: Path, labels: Mapping[str, str]) -> Iterator[GuestSandbox]:
        plan = self._plan(self._limits, venv=venv, for_setup=True)
        if plan.agent_uid is not None:
            _give(venv, plan.agent_uid)
        with self._start(plan, labels)[1] as sandbox:
            yield sandbox
        if plan.agent_uid is not None:
            _give(venv, 0)

    def _plan(self, limits: Limits, *, venv: Path | None, for_setup: bool = False) -> BubblewrapPlan:
        etc = self._folder / "etc"
        uid = _FIRST_UID + random.SystemRandom().randrange(1 << 20) if os.geteuid() == 0 else None
        if not (etc / "group").exists():
            etc.mkdir(parents=True, exist_ok=True)
            _write(
                etc / "passwd", f"root:x:0:0:root:/:/bin/bash\nagent:x:{AGENT_UID}:{AGENT_UID}::/home/agent:/bin/bash\n"
            )
            _write(etc / "group", f"root:x:0:\nagent:x:{AGENT_UID}:\n")
        return BubblewrapPlan(limits, venv, etc, for_setup, uid)

    def _start(self, plan: BubblewrapPlan, labels: Mapping[str, str]) -> tuple[int, GuestSandbox]:
        line = BubblewrapLine(*bubblewrap_command.command(plan), {"PATH": os.environ.get("PATH", os.defpath)})
        channel = GuestChannel(line, body_limit=plan.limits.output_bytes + 1024)
        try:
            channel.wait_ready(_START_TIMEOUT_S)
            record = self._record(line.pid, labels)
        except GuestGone as error:
            said = line.said()
            line.close()
            raise SandboxError(f"A bubblewrap sandbox does not start: {said or error}") from error
        except BaseException:
            line.close()
            raise
        return line.pid, GuestSandbox(channel, lambda: record.unlink(missing_ok=True))

    def _record(self, pid: int, labels: Mapping[str, str]) -> Path:
        folder = self._folder / "running"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{uuid.uuid4().hex}.json"
        content = {"pid": pid, "started": _start_time(pid), **{key: labels.get(key, "") for key in ("task", "owner")}}
        _write(path, json.dumps(content))
        return path

    def _records(self) -> list[tuple[Path, dict[str, Any]]]:
        found = []
        for path in sorted((self._folder / "running").glob("*.json")):
            with contextlib.suppress(OSError, ValueError):
                found.append((path, json.loads(path.read_text(encoding="utf-8"))))
        return found

    def _end(self, path: Path, record: Mapping[str, Any]) -> bool:
        """End the sandbox of a record, and return whether it still ran."""
        alive = _is_alive(record)
        if alive:
            pid = int(record["pid"])
            # What runs inside dies with the outer process, but a moment later.
            processes = {pid: record["started"]} | {child: _start_time(child) for child in _children(pid)}
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            _wait_for_the_end(processes)
        path.unlink(missing_ok=True)
        return alive


def _is_left_over(record: Mapping[str, Any], running_tasks: frozenset[str]) -> bool:
    """One that was started for no task is its process's own, and dies with it: only its record can be left."""
    task = record.get("task", "")
    return task not in running_tasks if task else not _is_alive(record)


def _is_alive(record: Mapping[str, Any]) -> bool:
    """Whether a record's sandbox still runs; the start time tells it from a later process of that id."""
    started = _start_time(int(record["pid"]))
    return bool(started) and started == record["started"]


def _start_time(pid: int) -> str:
    """Return a process's start (field 22 of proc(5)'s stat), or an empty text where there is none or it is dead."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def _children(pid: int) -> list[int]:
    """Return the processes that a process has started and that are still there."""
    with contextlib.suppress(OSError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()]
    return []


def _wait_for_the_end(processes: Mapping[int, str]) -> None:
    """Wait until these processes, by their ids and start times, have ended; the kernel does not let one stay."""
    until = time.monotonic() + _END_TIMEOUT_S
    while any(started and _start_time(pid) == started for pid, started in processes.items()):
        if time.monotonic() > until:
            return
        time.sleep(0.002)


def _give(folder: Path, uid: int) -> None:
    os.chown(folder, uid, uid)
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            os.chown(Path(parent) / name, uid, uid, follow_symlinks=False)


def _write(path: Path, text: str) -> None:
    draft = path.with_name(f".{uuid.uuid4().hex}")
    draft.write_text(text, encoding="utf-8")
    draft.chmod(0o644)
    draft.rename(path)

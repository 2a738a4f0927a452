"""The tests' results without a patch, kept below the data folder for every worker that shares it.

They are found again by all that they depend on: the commit, the image itself and not its name, the command, the limits,
and the repository's configuration. What cannot be part of that (the date, the machine's load) is why they grow old.
"""

import hashlib
import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from sandbox.comparison import results_of
from sandbox.results import TestReport
from sandbox.types import Backend
from store.scrub import scrub_json

if TYPE_CHECKING:
    from workers.context import Work

_log = structlog.get_logger(__name__)
_FORMAT = 2
"""Raised where reports are read or written in another way."""
_LIFE_S = 7 * 86_400.0
_LIFE_OF_A_TIMEOUT_S = 86_400.0
"""That a suite did not end may have been the machine's fault."""
_MOST = 500


@dataclass(frozen=True)
class Baselines:
    """Reports as files, one for each key. Whatever is wrong with one, it is not there: it is only a cache."""

    folder: Path

    def get(self, key: str) -> TestReport | None:
        path = self._path(key)
        try:
            age = time.time() - path.stat().st_mtime
            report = _report(json.loads(path.read_bytes()))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        return report if age < (_LIFE_OF_A_TIMEOUT_S if report.timed_out else _LIFE_S) else None

    def keep(self, key: str, report: TestReport) -> None:
        """Keep a report that can be believed, or that says that the suite does not end in time."""
        if report.files is not None or not (report.timed_out or (results_of(report) and not report.note)):
            return
        path = self._path(key)
        draft = path.with_suffix(f".{time.monotonic_ns()}")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            draft.write_text(json.dumps(scrub_json(asdict(report))), encoding="utf-8")
            draft.replace(path)
            self._drop_the_oldest()
        except OSError as error:  # a full disk, say: the tests are run again
            _log.warning("baseline.not_kept", error=str(error))
            with suppress(OSError):
                draft.unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"

    def _drop_the_oldest(self) -> None:
        found = sorted(self.folder.iterdir(), key=lambda path: path.stat().st_mtime)
        for path in found[:-_MOST]:
            path.unlink(missing_ok=True)


def key_of(work: "Work", backend: Backend, test_timeout_s: float) -> str:
    """Return what names the baseline of a task's repository at its commit."""
    parts: Mapping[str, Any] = {
        "format": _FORMAT,
        "repository": work.source.repository,
        "commit": work.source.base_sha,
        "backend": backend.name,
        "image": backend.identify(work.sandbox.image),
        "command": asdict(work.test_command) if work.test_command else None,
        "limits": asdict(work.sandbox.limits),
        "timeout_s": test_timeout_s,
        "configuration": work.source.config.model_dump(mode="json"),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _report(values: Mapping[str, Any]) -> TestReport:
    report = TestReport(**values)
    return replace(report, results=dict(report.results), rewritten=tuple(report.rewritten))

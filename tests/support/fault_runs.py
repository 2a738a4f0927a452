"""Whole runs one call of which fails, for the tables of calls x faults."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.ending import Ending
from tests.support.faulty_git import GIT_KINDS
from tests.support.faulty_wire import KINDS
from tests.support.run_stories import CI_FAILURE, ISSUE, PULL_REQUEST, Story
from tests.support.whole_run import WholeRun


@dataclass(frozen=True)
class Table:
    """One story's calls to the API, or its requests of git's own over HTTP."""

    story: Story
    over_git: bool

    @property
    def title(self) -> str:
        return f"{self.story.name}: {'git' if self.over_git else 'the API'}"

    @property
    def faults(self) -> Sequence[str]:
        return GIT_KINDS if self.over_git else KINDS


TABLES = (
    Table(ISSUE, over_git=False),
    Table(PULL_REQUEST, over_git=False),
    Table(CI_FAILURE, over_git=False),
    Table(ISSUE, over_git=True),
    Table(CI_FAILURE, over_git=True),
)


class FaultRuns:
    """One GitHub and one acrouter for the runs of a table; `whole` is how they end when nothing fails."""

    def __init__(self, folder: Path, table: Table) -> None:
        self._runs = WholeRun(folder, table.story, git="http" if table.over_git else "quick")
        self._run: Any = self._runs.run_over_git if table.over_git else self._runs.run
        self._run()  # makes what is made once a repository
        self.whole: Ending = self._run()

    def __enter__(self) -> "FaultRuns":
        return self

    def __exit__(self, *_: object) -> None:
        self._runs.close()

    def run(self, fault: str, fail_at: int) -> Ending:
        found: Ending = self._run(fault, fail_at)
        return found

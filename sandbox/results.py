"""What tests said, and what a verification concludes from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from sandbox.evidence import Evidence

TestStatus = Literal["passed", "failed", "error", "skipped"]

MAX_RESULTS = 200_000
"""Of one run: no suite has as many, and a file of them is quickly written."""
TOO_MANY = f"The run has more than {MAX_RESULTS:,} results, which is too many to compare."

RunnerName = Literal["pytest", "unittest", "node", "jest", "vitest", "go", "cargo", "maven", "gradle", "exit_code"]
"""How a run's results are read; `exit_code`: not at all, the tests are one."""


@dataclass(frozen=True)
class TestCommand:
    """How to run a repository's tests."""

    __test__ = False  # not one of pytest's

    command: str
    runner: RunnerName
    source: str
    """Where it comes from, for people."""
    script: str = ""
    """What runs the same by a name of ours, where `command` is words of a file of the repository."""

    @property
    def told(self) -> str:
        """What an agent is told to run: nothing that a stranger wrote, unless it is configured."""
        return self.script or self.command


@dataclass(frozen=True)
class TestReport:
    """One run of the tests. `results` is empty where only the exit code is known."""

    __test__ = False

    command: str
    results: Mapping[str, TestStatus]
    exit_code: int
    timed_out: bool
    duration_s: float
    output_tail: str
    note: str = ""
    """Why the results are not to be believed, or are missing; empty where exit code, counts and results agree."""
    rewritten: Sequence[str] = ()
    """Test modules that were not any more what they had been when the run ended."""
    not_collected: bool = False
    """No test could be run, since a file that all of them need cannot be imported; its result says which. There is a
    note as well, but a patch that mends it can be measured."""
    files: frozenset[str] | None = None
    """Of a run in parts: the test files of the parts that came to their end. None: all were run at once."""

    @property
    def passed(self) -> int:
        return sum(status == "passed" for status in self.results.values())

    @property
    def failed(self) -> int:
        return sum(status in ("failed", "error") for status in self.results.values())


@dataclass(frozen=True)
class Signal:
    """One fact about a patch, for the score."""

    name: str
    value: float | None
    """In [0, 1]; None where it could not be had: it is left out and the other weights are renormalised."""
    weight: float
    evidence: str


Verdict = Literal["verified", "unverified", "breaking", "rejected", "empty"]
"""verified: something that failed passes now and nothing broke. unverified: nothing broke and nothing proves it.
breaking: tests that passed fail now. rejected: the patch may not be applied. empty: no change."""


@dataclass(frozen=True)
class VerificationResult:
    verdict: Verdict
    score: float
    signals: Sequence[Signal]
    summary: str
    before: TestReport | None
    after: TestReport | None
    fail_to_pass: Sequence[str] = ()
    pass_to_fail: Sequence[str] = ()
    evidence: Evidence = field(default_factory=Evidence)
    baseline: TestReport | None = None
    """The whole suite without the patch, for other attempts; `before` is what was compared."""
    measured: bool = True
    """False: there was nothing to measure the patch by, whatever it is worth."""

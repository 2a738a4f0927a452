"""What was found out about a patch, and what it means: which tests it fixed, proved, broke, weakened."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sandbox.agreement import EarlierPatch
from sandbox.comparison import WHOLE, compare, failing, passing, proving, results_of
from sandbox.opinions import Opinion
from sandbox.patch import PatchReport
from sandbox.results import TestCommand, TestReport
from sandbox.testing.belonging import belongs_to


@dataclass(frozen=True)
class Facts:
    """All that was found out about an applicable patch."""

    patch: PatchReport
    before: TestReport | None = None
    """None: the repository has no tests."""
    after: TestReport | None = None
    unfixed: TestReport | None = None
    """The patch's tests on the unfixed source; None where the patch has no tests, or no source."""
    originals: TestReport | None = None
    """All test files as they were, on the fixed source; None where the patch edits none."""
    flaky: frozenset[str] = frozenset()
    examples_before: Mapping[str, bool] = field(default_factory=dict)
    examples_after: Mapping[str, bool] = field(default_factory=dict)
    unparsable: Sequence[str] | None = ()
    """Changed files with a syntax error; None where there was nobody to ask."""
    timeout_s: float = 0.0
    suite_files: int = 0
    """How many there are, where the suite was run in parts."""
    dimension: str = ""
    """The kind of task, which says what counts; empty: not known."""
    task_text: str = ""
    command: TestCommand | None = None
    setup: Sequence[str] = ()
    """Commands that installed what the tests need."""
    baseline: TestReport | None = None
    """The whole suite without the patch, where `before` is a run in parts: the same otherwise."""
    earlier: Sequence[EarlierPatch] = ()
    """Other models' patches for the same task that nothing speaks against."""
    opinion: Opinion | None = None
    """None: no model judges."""

    @property
    def left_out(self) -> int:
        """Test files that were not run, for want of time."""
        ran = None if self.after is None else self.after.files
        return 0 if ran is None else max(self.suite_files - len(ran), 0)

    @property
    def measurable(self) -> bool:
        """Whether the tests say something without the patch: else they can say nothing of it."""
        before, after = self.before, self.after
        if before is None or before.timed_out or not results_of(before):
            return False
        return not before.note or (before.not_collected and after is not None and not after.note)


@dataclass(frozen=True)
class Reading:
    """What the facts mean. Sorted test ids."""

    fixed: Sequence[str]
    """By tests that were there and by the patch's own."""
    reproductions: Sequence[str]
    idle: Sequence[str]
    broken: Sequence[str]
    rewritten: Sequence[str]
    """Test modules that only a run with something of the patch wrote over."""
    weakened: Sequence[str]
    """Why the tests are weaker, as sentences."""
    own_failing: Sequence[str]
    reproduction: float | None
    target: float | None
    held_examples: Sequence[str]
    unfixed_examples: Sequence[str]

    @property
    def speaks_against(self) -> bool:
        """Whether something was found that a right patch would not have."""
        return bool(self.broken or self.rewritten or self.weakened or self.own_failing)


def read(facts: Facts) -> Reading:
    """Return what the facts mean."""
    held = [name for name, holds in facts.examples_after.items() if holds and not facts.examples_before.get(name, True)]
    unheld = [
        name for name, holds in facts.examples_after.items() if not holds and not facts.examples_before.get(name, True)
    ]
    weakened = list(facts.patch.weakens_tests)
    if facts.before is None or facts.after is None:
        return Reading((), (), (), (), (), weakened, (), None, None, held, unheld)
    edited = [change.path for change in facts.patch.test_files]
    changed = [change.path for change in facts.patch.files]
    changes = compare(facts.before, facts.after, edited, facts.flaky, changed=changed)
    # Where the patch edits tests, a test is fixed only if it passes on the new source with all tests as they were.
    fixed = set(changes.fail_to_pass) if facts.patch.source_files else set()
    if facts.patch.edits_tests or (edited and WHOLE in fixed):
        fixed &= passing(facts.originals)
    proofs = (proving(facts.before, facts.unfixed, facts.after) - facts.flaky) if facts.patch.source_files else set()
    is_of_edited = belongs_to(edited)
    own_failing = sorted(
        test for test in failing(facts.after) - set(results_of(facts.before)) - facts.flaky if is_of_edited(test)
    )
    known_bad = failing(facts.before) - facts.flaky
    target = min(len(fixed) / len(known_bad), 1.0) if fixed else None if proofs or not known_bad else 0.0
    reproduction = None
    if facts.unfixed is not None:
        reproduction = 1.0 if proofs and not own_failing else 0.0
    # The patch's own tests: new ones, and those that it wrote anew.
    own = proofs - fixed
    new = passing(facts.after) - set(results_of(facts.before)) - facts.flaky
    return Reading(
        fixed=sorted(fixed | proofs),
        reproductions=sorted(own),
        idle=sorted(new & passing(facts.unfixed)),
        broken=changes.pass_to_fail,
        rewritten=_rewritten(facts),
        weakened=_weakened(facts, weakened, changes.vanished),
        own_failing=own_failing,
        reproduction=reproduction,
        target=target,
        held_examples=held,
        unfixed_examples=unheld,
    )


def _rewritten(facts: Facts) -> list[str]:
    known = set(facts.before.rewritten) if facts.before else set()
    runs = [run for run in (facts.after, facts.unfixed, facts.originals) if run is not None]
    return sorted({path for run in runs for path in run.rewritten} - known)


def _weakened(facts: Facts, found: list[str], vanished: Sequence[str]) -> list[str]:
    """Lines that look weaker are harmless where the old tests, all of them, pass on the new source."""
    lost = (passing(facts.before) & failing(facts.originals)) - facts.flaky
    reasons = []
    if lost:
        reasons.append(f"{len(lost)} of the edited tests fail on the new source as they were.")
    elif found and (facts.originals is None or failing(facts.originals) - facts.flaky):
        reasons += found
    if vanished:
        reasons.append(f"{len(vanished)} tests that passed are skipped or gone.")
    return reasons

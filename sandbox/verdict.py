"""From facts about a patch to its signals, its score in [0, 1] and a verdict.

The score is the weighted mean of the signals that could be had (weights: `sandbox.signal_weights`), then held within
the verdict's bounds:

| verdict | bounds |
|---|---|
| verified | at least 0.7 |
| unverified | at most 0.6; 0.4 where no test could be run; 0.3 where tests are weakened or the patch's own tests fail |
| breaking | at most 0.2 |
| rejected, empty | 0 |
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sandbox import diff_place
from sandbox.by_hand import by_hand
from sandbox.comparison import WHOLE, compare, failing, passing, proving, results_of
from sandbox.evidence import Evidence
from sandbox.patch import PatchReport
from sandbox.signal_weights import BASE, weights_for
from sandbox.testing.run import file_of
from sandbox.types import Signal, TestCommand, TestReport, Verdict, VerificationResult
from templates import render

_VERIFIED_FLOOR, _UNVERIFIED_CAP, _UNTESTED_CAP, _SUSPICIOUS_CAP, _BREAKING_CAP = 0.7, 0.6, 0.4, 0.3, 0.2
_SMALL_DIFF, _HUGE_DIFF = 100, 1000


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
    """Changed Python files with a syntax error; None where there was no Python to ask."""
    timeout_s: float = 0.0
    dimension: str = ""
    """The kind of task, which says what counts; empty: not known."""
    task_text: str = ""
    command: TestCommand | None = None
    setup: Sequence[str] = ()
    """Commands that installed what the tests need."""


@dataclass(frozen=True)
class _Reading:
    """What the facts mean."""

    fixed: Sequence[str]
    """By tests that were there and by the patch's own."""
    reproductions: Sequence[str]
    idle: Sequence[str]
    broken: Sequence[str]
    weakened: Sequence[str]
    """Why the tests are weaker, as sentences."""
    own_failing: Sequence[str]
    reproduction: float | None
    target: float | None
    held_examples: Sequence[str]
    unfixed_examples: Sequence[str]


def rejected(reasons: Sequence[str]) -> VerificationResult:
    """Return the result of a patch that may not, or cannot, be applied."""
    signal = Signal("applies", 0.0, BASE["applies"], " ".join(reasons))
    summary = _summary("rejected", detail=reasons[0])
    return VerificationResult("rejected", 0.0, [signal], summary, None, None)


def empty() -> VerificationResult:
    """Return the result of a patch without a change."""
    signal = Signal("applies", 0.0, BASE["applies"], "The patch is empty.")
    return VerificationResult("empty", 0.0, [signal], _summary("empty"), None, None)


def judge(facts: Facts) -> VerificationResult:
    """Return the verdict, the score and the signals of a patch that applies."""
    reading = _read(facts)
    signals = _signals(facts, reading)
    verdict, reason, low, high = _decide(facts, reading)
    known = [signal for signal in signals if signal.value is not None]
    score = sum(signal.weight * (signal.value or 0.0) for signal in known) / sum(signal.weight for signal in known)
    return VerificationResult(
        verdict=verdict,
        score=round(min(max(score, low), high), 4),
        signals=signals,
        summary=_summary(
            reason,
            detail=_detail(facts, reading, reason),
            broken=len(reading.broken),
            fixed=len(reading.fixed),
            failing=len(reading.own_failing),
            flaky=len(facts.flaky),
            ran=len(passing(facts.after)),
            timeout_s=round(facts.timeout_s),
        ),
        before=facts.before,
        after=facts.after,
        fail_to_pass=reading.fixed,
        pass_to_fail=reading.broken,
        evidence=_evidence(facts, reading),
    )


def _evidence(facts: Facts, reading: _Reading) -> Evidence:
    tests = facts.patch.test_files
    commands = None
    if facts.command is not None and facts.after is not None:
        commands = by_hand(
            facts.command,
            facts.setup,
            proofs=reading.fixed,
            broken=reading.broken,
            own=[change.path for change in tests if change.kind != "deleted"] if reading.reproductions else (),
        )
    return Evidence(
        fixed=[test for test in reading.fixed if test not in reading.reproductions],
        reproductions=reading.reproductions,
        idle=reading.idle,
        own_failing=reading.own_failing,
        flaky=sorted(facts.flaky),
        test_files=[(change.kind, change.path) for change in tests],
        remarks=[*reading.weakened, *(remark for remark in facts.patch.warnings if remark not in reading.weakened)],
        by_hand=commands,
    )


def _read(facts: Facts) -> _Reading:
    held = [name for name, holds in facts.examples_after.items() if holds and not facts.examples_before.get(name, True)]
    unheld = [
        name for name, holds in facts.examples_after.items() if not holds and not facts.examples_before.get(name, True)
    ]
    weakened = list(facts.patch.weakens_tests)
    if facts.before is None or facts.after is None:
        return _Reading((), (), (), (), weakened, (), None, None, held, unheld)
    edited = [change.path for change in facts.patch.test_files]
    changes = compare(facts.before, facts.after, edited, facts.flaky)
    # Where the patch edits tests, a test is fixed only if it passes on the new source with all tests as they were.
    fixed = set(changes.fail_to_pass) if facts.patch.source_files else set()
    if facts.patch.edits_tests or (edited and WHOLE in fixed):
        fixed &= passing(facts.originals)
    proofs = (proving(facts.before, facts.unfixed, facts.after) - facts.flaky) if facts.patch.source_files else set()
    own_failing = sorted(
        test
        for test in failing(facts.after) - set(results_of(facts.before)) - facts.flaky
        if file_of(test, edited) or test in edited
    )
    known_bad = failing(facts.before) - facts.flaky
    target = len(fixed) / len(known_bad) if fixed else None if proofs or not known_bad else 0.0
    reproduction = None
    if facts.unfixed is not None:
        reproduction = 1.0 if proofs and not own_failing else 0.0
    # The patch's own tests: new ones, and those that it wrote anew.
    own = proofs - fixed
    new = passing(facts.after) - set(results_of(facts.before)) - facts.flaky
    return _Reading(
        fixed=sorted(fixed | proofs),
        reproductions=sorted(own),
        idle=sorted(new & passing(facts.unfixed)),
        broken=changes.pass_to_fail,
        weakened=_weakened(facts, weakened, changes.vanished),
        own_failing=own_failing,
        reproduction=reproduction,
        target=target,
        held_examples=held,
        unfixed_examples=unheld,
    )


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


def _decide(  # noqa: PLR0911  (a table of cases, the first that fits)
    facts: Facts, reading: _Reading
) -> tuple[Verdict, str, float, float]:
    """Return the verdict, the reason that the summary gives, and the score's bounds."""
    before, after = facts.before, facts.after
    if before is None or after is None:
        return "unverified", "no_tests", 0.0, _UNTESTED_CAP
    if after.timed_out and not before.timed_out:
        return "breaking", "timeout", 0.0, _BREAKING_CAP
    if reading.broken:
        return "breaking", "broken", 0.0, _BREAKING_CAP
    if before.timed_out or after.timed_out or not results_of(after) or before.note or after.note:
        return "unverified", "not_run", 0.0, _UNTESTED_CAP
    if not facts.patch.source_files:
        return "unverified", "only_tests", 0.0, _SUSPICIOUS_CAP if reading.weakened else _UNVERIFIED_CAP
    if reading.weakened:
        return "unverified", "weakened", 0.0, _SUSPICIOUS_CAP
    if reading.own_failing:
        return "unverified", "own_tests_fail", 0.0, _SUSPICIOUS_CAP
    if (reading.fixed or reading.held_examples) and not facts.unparsable:
        return "verified", "verified", _VERIFIED_FLOOR, 1.0
    return "unverified", "unproven", 0.0, _UNVERIFIED_CAP


def _signals(facts: Facts, reading: _Reading) -> list[Signal]:
    ran = facts.after is not None and facts.before is not None and bool(results_of(facts.after))
    changed = facts.patch.added_lines + facts.patch.removed_lines
    size = 1.0 - min(max(changed - _SMALL_DIFF, 0) / (_HUGE_DIFF - _SMALL_DIFF), 1.0)
    command = facts.after.command if facts.after else ""
    examples = None
    if reading.held_examples or reading.unfixed_examples:
        examples = 1.0 if reading.held_examples else 0.0
    values: dict[str, tuple[float | None, str]] = {
        "applies": (1.0, f"git apply takes the patch; it changes {len(facts.patch.files)} file(s)."),
        "no_regressions": (
            (0.0 if reading.broken else 1.0) if ran else None,
            f"{len(reading.broken)} test(s) that passed fail now, by `{command}`." if ran else "No tests were run.",
        ),
        "target_fixed": (
            reading.target,
            f"{len(failing(facts.before))} test(s) failed before; {len(reading.fixed)} proof(s) by tests.",
        ),
        "reproduction": (
            reading.reproduction,
            _reproduction(reading, facts),
        ),
        "examples": (
            examples,
            f"{len(reading.held_examples)} example(s) of the task's text hold only with the patch, "
            f"{len(reading.unfixed_examples)} fail with and without it.",
        ),
        "diff_size": (size, f"{facts.patch.added_lines} lines added, {facts.patch.removed_lines} removed."),
        "diff_place": (
            diff_place.place(facts.task_text, [change.path for change in facts.patch.source_files]),
            "Of the files that the task's text names: 1 is that the patch changes one of them.",
        ),
        "tests_not_weakened": (
            0.0 if reading.weakened else 0.5 if facts.patch.weakens_tests else 1.0,
            " ".join(reading.weakened or facts.patch.weakens_tests) or "No test is deleted, skipped or weakened.",
        ),
        "files_parse": (
            None if facts.unparsable is None else 0.0 if facts.unparsable else 1.0,
            f"{len(facts.unparsable or ())} changed Python file(s) cannot be parsed.",
        ),
    }
    return [
        Signal(name, values[name][0], weight, values[name][1]) for name, weight in weights_for(facts.dimension).items()
    ]


def _reproduction(reading: _Reading, facts: Facts) -> str:
    if facts.unfixed is None:
        return "The patch brings no test that could be run without its fix."
    if reading.own_failing:
        return f"{len(reading.own_failing)} of the patch's own test(s) fail with it."
    if reading.reproduction:
        return "The patch's tests fail on the old source and pass on the new one."
    return "The patch's tests pass on the old source too, so they show nothing."


def _detail(facts: Facts, reading: _Reading, reason: str) -> str:
    if reason == "weakened":
        return reading.weakened[0]
    if reason == "not_run" and facts.after is not None and facts.before is not None:
        return facts.after.note or facts.before.note
    return ""


def _summary(reason: str, **values: object) -> str:
    defaults: dict[str, object] = dict.fromkeys(("broken", "fixed", "failing", "flaky", "ran", "timeout_s"), 0)
    text = render("verification/summary.md.j2", **(defaults | {"detail": ""} | values | {"reason": reason}))
    return " ".join(text.split())

"""From facts about a patch to its signals, its score in [0, 1] and a verdict.

The score is the weighted mean of the facts that could be had (weights: `sandbox.signal_weights`), then held within the
verdict's bounds:

| verdict | bounds |
|---|---|
| verified | at least 0.7 |
| unverified | at most 0.6; 0.4 where no test could be run; 0.3 where tests are weakened or the patch's own tests fail |
| breaking | at most 0.2 |
| rejected, empty | 0 |

A judge's probability is then mixed in with its weight, as a place within those bounds: whatever it was talked into, it
moves the score by no more than its weight of their range, and no verdict. Last, an agreement with another model's patch
lifts a score that nothing speaks against by no more than its weight: an unverified one stays below 0.65.
"""

from collections.abc import Sequence

from sandbox.by_hand import by_hand
from sandbox.comparison import passing, results_of
from sandbox.evidence import Evidence
from sandbox.reading import Facts, Reading, read
from sandbox.results import Signal, Verdict, VerificationResult
from sandbox.signal_weights import BASE, BESIDE
from sandbox.signals import signals_of, unparsable_words
from templates import render

_VERIFIED_FLOOR, _UNVERIFIED_CAP, _UNTESTED_CAP, _BREAKING_CAP = 0.7, 0.6, 0.4, 0.2
SUSPICIOUS_CAP = 0.3
"""A score that is not higher means that something speaks against the patch."""


def rejected(reasons: Sequence[str]) -> VerificationResult:
    """Return the result of a patch that may not, or cannot, be applied."""
    signal = Signal("applies", 0.0, BASE["applies"], " ".join(reasons))
    summary = _summary("rejected", detail=reasons[0])
    return VerificationResult("rejected", 0.0, [signal], summary, None, None)


def empty() -> VerificationResult:
    """Return the result of a patch without a change."""
    signal = Signal("applies", 0.0, BASE["applies"], "The patch is empty.")
    return VerificationResult("empty", 0.0, [signal], _summary("empty"), None, None)


def reach(facts: Facts) -> VerificationResult:
    """Return the verdict, the score and the signals of a patch that applies."""
    reading = read(facts)
    signals = signals_of(facts, reading)
    verdict, reason, low, high = _decide(facts, reading)
    return VerificationResult(
        verdict=verdict,
        score=_score(signals, low, high),
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
            left_out=facts.left_out,
            files=facts.suite_files,
        ),
        before=facts.before,
        after=facts.after,
        fail_to_pass=reading.fixed,
        pass_to_fail=reading.broken,
        evidence=_evidence(facts, reading),
        baseline=facts.baseline,
        measured=facts.measurable,
    )


def _score(signals: Sequence[Signal], low: float, high: float) -> float:
    known = {signal.name: (signal.weight, signal.value) for signal in signals if signal.value is not None}
    facts = [pair for name, pair in known.items() if name not in BESIDE]
    mean = sum(weight * value for weight, value in facts) / sum(weight for weight, _ in facts)
    score = min(max(mean, low), high)
    if "judge" in known:
        weight, probability = known["judge"]
        score += weight * (low + probability * (high - low) - score)
    if "agreement" in known:
        weight, share = known["agreement"]
        score += weight * max(share - score, 0.0)
    return round(score, 4)


def _evidence(facts: Facts, reading: Reading) -> Evidence:
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
        remarks=list(dict.fromkeys([*reading.weakened, *facts.patch.warnings, *_more_remarks(facts, reading)])),
        by_hand=commands,
    )


def _more_remarks(facts: Facts, reading: Reading) -> list[str]:
    unread = [unparsable_words(facts)] if facts.unparsable else []
    return [*unread, *(f"Running the tests with the patch wrote over {path!r}." for path in reading.rewritten)]


def _decide(  # noqa: PLR0911  (a table of cases, the first that fits)
    facts: Facts, reading: Reading
) -> tuple[Verdict, str, float, float]:
    """Return the verdict, the reason that the summary gives, and the score's bounds."""
    before, after = facts.before, facts.after
    if before is None or after is None:
        return "unverified", "no_tests", 0.0, _UNTESTED_CAP
    if after.timed_out and not before.timed_out:
        return "breaking", "timeout", 0.0, _BREAKING_CAP
    if reading.broken:
        return "breaking", "broken", 0.0, _BREAKING_CAP
    if before.timed_out or after.timed_out or not facts.measurable or not results_of(after) or after.note:
        return "unverified", "not_run", 0.0, _UNTESTED_CAP
    if reading.rewritten:
        return "unverified", "rewritten", 0.0, SUSPICIOUS_CAP
    if not facts.patch.source_files:
        return "unverified", "only_tests", 0.0, SUSPICIOUS_CAP if reading.weakened else _UNVERIFIED_CAP
    if reading.weakened:
        return "unverified", "weakened", 0.0, SUSPICIOUS_CAP
    if reading.own_failing:
        return "unverified", "own_tests_fail", 0.0, SUSPICIOUS_CAP
    if (reading.fixed or reading.held_examples) and not facts.unparsable:
        return "verified", "verified", _VERIFIED_FLOOR, 1.0
    return "unverified", "unproven", 0.0, _UNVERIFIED_CAP


def _detail(facts: Facts, reading: Reading, reason: str) -> str:
    if reason == "weakened":
        return reading.weakened[0]
    if reason == "rewritten":
        return ", ".join(reading.rewritten[:3]) + (", ..." if len(reading.rewritten) > 3 else "")
    if reason == "not_run" and facts.after is not None and facts.before is not None:
        return facts.after.note or facts.before.note
    return ""


def _summary(reason: str, **values: object) -> str:
    defaults: dict[str, object] = dict.fromkeys(
        ("broken", "fixed", "failing", "flaky", "ran", "timeout_s", "left_out", "files"), 0
    )
    text = render("verification/summary.md.j2", **(defaults | {"detail": ""} | values | {"reason": reason}))
    return " ".join(text.split())

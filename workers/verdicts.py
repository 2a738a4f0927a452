"""A verdict as it is stored: scrubbed, and within limits."""

from collections.abc import Sequence
from typing import Any

from sandbox.evidence import ByHand
from sandbox.results import TestReport, VerificationResult
from store.scrub import scrub_json
from store.tables import Verification

_MOST = 200
"""Of each kind of evidence; the two lists that tell fixed from broken are kept whole."""


def verification_row(attempt_id: int, result: VerificationResult) -> Verification:
    """Return the row of an attempt's verdict."""
    return Verification(
        attempt_id=attempt_id,
        score=result.score,
        verdict=result.verdict,
        summary=scrub_json(result.summary),
        signals=[
            {"name": s.name, "value": s.value, "weight": s.weight, "evidence": scrub_json(s.evidence)}
            for s in result.signals
        ],
        tests=scrub_json(_tests(result)),
    )


def _tests(result: VerificationResult) -> dict[str, Any]:
    report, evidence = result.after or result.before, result.evidence
    return {
        "command": report.command if report else "",
        "measured": result.measured,
        "before": _counts(result.before),
        "after": _counts(result.after),
        "fail_to_pass": list(result.fail_to_pass),
        "pass_to_fail": list(result.pass_to_fail),
        "fixed": _some(evidence.fixed),
        "reproductions": _some(evidence.reproductions),
        "idle": _some(evidence.idle),
        "own_failing": _some(evidence.own_failing),
        "flaky": _some(evidence.flaky),
        "test_files": [{"kind": kind, "path": path} for kind, path in evidence.test_files[:_MOST]],
        "remarks": _some(evidence.remarks),
        "by_hand": _by_hand(evidence.by_hand),
    }


def _some(items: Sequence[str]) -> list[str]:
    return list(items[:_MOST])


def _by_hand(commands: ByHand | None) -> dict[str, Any] | None:
    if commands is None:
        return None
    return {
        "setup": list(commands.setup),
        "proof": commands.proof,
        "broken": commands.broken,
        "everything": commands.everything,
        "own_tests": _some(commands.own_tests),
    }


def _counts(report: TestReport | None) -> dict[str, Any] | None:
    if report is None:
        return None
    return {
        "passed": report.passed,
        "failed": report.failed,
        "exit_code": report.exit_code,
        "timed_out": report.timed_out,
        "duration_s": round(report.duration_s, 3),
        "output_tail": report.output_tail,
    }

"""The signals of a patch: facts as numbers in [0, 1], each with its evidence in words."""

from sandbox import agreement, diff_place
from sandbox.comparison import failing, results_of
from sandbox.patch import PatchReport
from sandbox.reading import Facts, Reading
from sandbox.results import Signal
from sandbox.signal_weights import weights_for

_SMALL_DIFF, _HUGE_DIFF = 100, 1000
_FEW_FILES, _MANY_FILES = 5, 50


def signals_of(facts: Facts, reading: Reading) -> list[Signal]:
    """Return all signals, with the weights of the task's dimension."""
    ran = facts.after is not None and facts.before is not None and bool(results_of(facts.after))
    changed = facts.patch.added_lines + facts.patch.removed_lines
    size = 1.0 - min(max(changed - _SMALL_DIFF, 0) / (_HUGE_DIFF - _SMALL_DIFF), 1.0)
    share_left_out = facts.left_out / facts.suite_files if facts.suite_files else 0.0
    examples = None
    if reading.held_examples or reading.unfixed_examples:
        examples = 1.0 if reading.held_examples else 0.0
    values: dict[str, tuple[float | None, str]] = {
        "applies": (1.0, f"git apply takes the patch; it changes {len(facts.patch.files)} file(s)."),
        "no_regressions": (
            (0.0 if reading.broken else 1.0 - share_left_out) if ran else None,
            _regressions(facts, reading) if ran else "No tests were run.",
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
            unparsable_words(facts),
        ),
        **_unusual(facts.patch),
        "judge": _judge(facts),
        "agreement": _agreement(facts, reading),
    }
    return [
        Signal(name, values[name][0], weight, values[name][1]) for name, weight in weights_for(facts.dimension).items()
    ]


def _judge(facts: Facts) -> tuple[float | None, str]:
    opinion = facts.opinion
    if opinion is None:
        return None, "No model judges this patch."
    cost = f" (${opinion.cost_usd:.4f})" if opinion.cost_usd else ""
    if opinion.probability is None:
        return None, f"{opinion.model} gives no opinion{cost}: {opinion.reason}"
    return opinion.probability, f"{opinion.model}{cost}: {opinion.reason}"


def _agreement(facts: Facts, reading: Reading) -> tuple[float | None, str]:
    if reading.speaks_against:
        return None, "Not looked at: something speaks against the patch."
    found = agreement.nearest(facts.patch, facts.earlier, facts.command)
    if found is None:
        return None, "No other model's patch to hold it against."
    whose = f"attempt {found.earlier.attempt}, {found.earlier.model}'s"
    return found.share, f"{found.share:.0%} of the changed lines are those of {whose}."


def _regressions(facts: Facts, reading: Reading) -> str:
    command = facts.after.command if facts.after else ""
    part = f" {facts.left_out} of {facts.suite_files} test files were not run." if facts.left_out else ""
    return f"{len(reading.broken)} test(s) that passed fail now, by `{command}`.{part}"


def _unusual(patch: PatchReport) -> dict[str, tuple[float | None, str]]:
    """A signal for each thing about a patch that a reviewer would stop at."""
    files = len(patch.files)

    def without(kind: str, nothing: str) -> tuple[float | None, str]:
        found = [finding.message for finding in patch.findings if finding.kind == kind]
        return (0.0 if found else 1.0, " ".join(found[:5]) or nothing)

    return {
        "few_files": (1.0 - min(max(files - _FEW_FILES, 0) / (_MANY_FILES - _FEW_FILES), 1.0), f"{files} file(s)."),
        "text_only": without("binary", "No binary change."),
        "modes_kept": without("mode", "No mode changes, and nothing new is executable."),
        "locks_kept": without("lock", "No lock file changes."),
    }


def unparsable_words(facts: Facts) -> str:
    """Say which changed files cannot be parsed."""
    bad = facts.unparsable or ()
    if facts.unparsable is None:
        return "The sandbox has nothing that could parse the changed files."
    return f"Cannot be parsed: {', '.join(bad[:5])}." if bad else "All changed files that the sandbox can parse do."


def _reproduction(reading: Reading, facts: Facts) -> str:
    if facts.unfixed is None:
        return "The patch brings no test that could be run without its fix."
    if reading.own_failing:
        return f"{len(reading.own_failing)} of the patch's own test(s) fail with it."
    if reading.reproduction:
        return "The patch's tests fail on the old source and pass on the new one."
    return "The patch's tests pass on the old source too, so they show nothing."

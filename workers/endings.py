"""Words for how an agent ended and for why a task has nothing to publish."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from store.tables import Attempt
from workers.endpoints import REFUSED

if TYPE_CHECKING:
    from workers.attempts import Attempted

_HOW = {
    "LimitsExceeded": "ran out of steps",
    "TimeExceeded": "ran out of time",
    "ContextExceeded": "filled its context",
    "RepeatedFormatError": "gave answers without a command",
    "BudgetExceeded": "ran out of budget",
    "ModelError": "could not be used",
    REFUSED: "refused the task",
    "ProgramError": "fell over",
    "SandboxError": "lost its sandbox",
}
_LONGEST_REASON = 400


def how_it_ended(attempt: Attempt) -> str:
    """Return what stopped an agent, e.g. `ran out of steps`; empty where it handed in by itself or is at work."""
    if attempt.exit_status in ("", "Submitted"):
        return ""
    if attempt.exit_status == "LimitsExceeded" and attempt.error:
        return "reached its cost limit"
    return _HOW.get(attempt.exit_status, f"ended with {attempt.exit_status}")


def unusable(attempt: Attempt) -> str:
    """Return why a model had no chance, e.g. `small could not be used: no connection`."""
    how = _HOW[REFUSED] if attempt.exit_status == REFUSED else _HOW["ModelError"]
    why = _told_once(attempt)
    return f"{attempt.model} {how}: {why}" if why else f"{attempt.model} {how}."


def none_answered(made: Sequence["Attempted"]) -> bool:
    """Return whether attempts were made and no model had a chance in any: that says nothing about the task."""
    return bool(made) and all(attempted.unusable for attempted in made)


def why_none_answered(made: Sequence["Attempted"]) -> str:
    """Return why no model could show anything: each with the last that its endpoint said."""
    newest = {attempted.attempt.model: unusable(attempted.attempt)[:_LONGEST_REASON] for attempted in made}
    return "No model could be reached. " + " ".join(newest.values())


def why_nothing(made: Sequence["Attempted"]) -> str:
    """Return why none of a task's attempts may be published."""
    if not made:
        return "No model was tried."
    last = made[-1]
    count = "One attempt was" if len(made) == 1 else f"{len(made)} attempts were"
    return f"{count} made and none may be published. The last one, {last.attempt.model}{_because(last)}"


def _because(last: "Attempted") -> str:
    how, error = how_it_ended(last.attempt), _told_once(last.attempt)
    told = f" {how} after {last.attempt.steps} step{'' if last.attempt.steps == 1 else 's'}" if how else ""
    summary = last.result.summary if last.result is not None else ""
    return f"{told}: {' '.join(part for part in (error, summary) if part)}" if error or summary else f"{told}."


def _told_once(attempt: Attempt) -> str:
    """The agent's words for its error begin with the model and that it failed; so do the sentences here."""
    error = attempt.error.strip()
    for said in ("cannot be used", "refused the request"):
        error = error.removeprefix(f"{attempt.model} {said}: ")
    return error

"""What the next model is told of the attempts that failed before it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from templates import render
from templates.escape import cut_middle
from workers.endings import how_it_ended

if TYPE_CHECKING:
    from workers.attempts import Attempted

_PATCH, _OUTPUT, _TESTS = 3_000, 1_500, 10


def earlier_attempts(made: Sequence["Attempted"]) -> str:
    """Return how each attempt ended, what it broke and its patch, the newest last; empty where none was judged.

    All of it is a model's or a repository's text: the prompt quotes it.
    """
    judged = [attempted for attempted in made if attempted.judged]
    return render("prompts/earlier_attempts.md.j2", attempts=[_told(attempted) for attempted in judged]).strip()


def _told(attempted: "Attempted") -> dict[str, object]:
    result = attempted.result
    after = result.after if result is not None else None
    return {
        "number": attempted.attempt.number,
        "how": how_it_ended(attempted.attempt),
        "summary": result.summary if result is not None else "",
        "broken": list(result.pass_to_fail[:_TESTS]) if result is not None else [],
        "output": after.output_tail[-_OUTPUT:] if after is not None and after.failed else "",
        "patch": cut_middle(attempted.attempt.patch, _PATCH),
    }

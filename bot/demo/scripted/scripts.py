"""What a scripted model does, step by step, as an agent with a shell would.

A script is a function of the bug and the model's behaviour; the conversation so far says which step comes next, so the
endpoint keeps no state.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from shlex import quote

from unidiff import Hunk, PatchSet

from bot.demo.bugs import Addition, Bug
from bot.demo.materialise import BugRepository

SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
_DELIMITER = "END_OF_SCRIPT"


@dataclass(frozen=True)
class Step:
    """One answer: what the model says and the command it runs; an empty command is an answer without a tool call."""

    thought: str
    command: str


_END = Step("The change is complete, so I submit it.", SUBMIT)
_LOOK = Step("I look at the repository first.", "ls -a")


def skilled(repository: BugRepository, model: str) -> Sequence[Step]:
    """Return what a model does with the bug, as the catalogue says; one that it does not name finds nothing."""
    bug = repository.bug
    behaviour = bug.skills.get(model)
    if behaviour == "misses" and bug.misses is not None:
        guess = Step("I think that a small addition is all it needs.", _append(bug.misses))
        return (_LOOK, _read_source(bug), guess, _END)
    if behaviour == "breaks" and bug.breaks is not None:
        wrap = Step("I wrap the function so that the example of the issue works.", _append(bug.breaks))
        # A careless model runs its own test only, and does not see what it breaks.
        return (_LOOK, _read_source(bug), _write_test(bug), wrap, _test_again([bug.regression_test.path]), _END)
    if behaviour == "solves":
        fix = Step("Now I change the source so that the behaviour is right.", _apply_fix(repository.fix_patch))
        tests = [bug.regression_test.path, *bug.hidden.files]
        return (_LOOK, _read_source(bug), _write_test(bug), fix, _test_again(tests), _END)
    return empty()


def empty() -> Sequence[Step]:
    """Return the script of a model that looks around and hands in nothing."""
    return (_LOOK, Step("I see nothing that has to change.", SUBMIT))


def loop_step(number: int) -> Step:
    """Return step `number` of a model that never ends."""
    return Step(f"Let me look once more (look {number + 1}).", f"ls -a && echo look {number + 1}")


def garbage_step(number: int) -> Step:
    """Return step `number` of a model that never calls the tool."""
    return Step(f"%%% lorem ipsum {number} <<tool>> {{not json", "")


def _read_source(bug: Bug) -> Step:
    paths = " ".join(quote(path) for path in bug.fix)
    return Step("These files belong to the issue.", f"wc -l {paths} && head -n 40 {quote(next(iter(bug.fix)))}")


def _write_test(bug: Bug) -> Step:
    test = bug.regression_test
    return Step("I write a test from the issue and run it. It should fail for now.", _append(test) + _run([test.path]))


def _test_again(paths: Iterable[str]) -> Step:
    return Step("I run the tests that belong to the change.", _run(paths))


def _run(paths: Iterable[str]) -> str:
    return f"python3 -m pytest -q -p no:cacheprovider {' '.join(quote(path) for path in paths)} 2>&1 | tail -n 15"


def _append(addition: Addition) -> str:
    folder = PurePosixPath(addition.path).parent
    return (
        f"mkdir -p {quote(str(folder))}\ncat >> {quote(addition.path)} <<'{_DELIMITER}'\n"
        f"{addition.text.rstrip()}\n{_DELIMITER}\n"
    )


def _apply_fix(patch: str) -> str:
    """Return a command that makes the patch's replacements, leaving out those that are there already."""
    lines = ["from pathlib import Path", "", "def edit(path, *replacements):"]
    lines += ["    text = Path(path).read_bytes().decode()"]
    lines += ["    for old, new in replacements:"]
    lines += ["        if new not in text:"]
    lines += ["            assert text.count(old) == 1, f'{path} has changed'"]
    lines += ["            text = text.replace(old, new)"]
    lines += ["    Path(path).write_bytes(text.encode())", ""]
    for changed in PatchSet(patch):
        pairs = ", ".join(f"({_side(hunk, '-')!r}, {_side(hunk, '+')!r})" for hunk in changed)
        lines.append(f"edit({changed.path!r}, {pairs})")
    return f"python3 - <<'{_DELIMITER}'\n" + "\n".join(lines) + f"\n{_DELIMITER}"


def _side(hunk: Hunk, sign: str) -> str:
    return "".join(line.value for line in hunk if line.line_type in (" ", sign))

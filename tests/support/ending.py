"""What a whole run leaves on its target, and what of it must not be."""

from dataclasses import dataclass

from store.states import TaskState
from tests.support.faulty_wire import Call

_WORDS = {
    TaskState.MERGED: "Merged",
    TaskState.STOPPED: "Stopped",
    TaskState.FAILED: "Failed",
    TaskState.REFUSED: "Not started",
    TaskState.NO_FIX: "No fix found",
    TaskState.PUBLISHED: "Pull request opened",
    TaskState.CLOSED: "Pull request closed",
    **{state: "" for state in TaskState if state.is_open},
}


@dataclass(frozen=True)
class Ending:
    """What is left on an issue or a PR."""

    tasks: list[TaskState]
    pulls: int
    status_comments: int
    check_runs: int
    commits: int
    """That acrouter added to the branch under repair."""
    words: str
    labels: set[str]
    calls: list[Call]

    def summary(self) -> str:
        """One word for how it ended: the task's state, or that the words are a refusal."""
        return ", ".join(state.value for state in self.tasks) or ("answered" if self.words else "nothing")

    def faults(self) -> list[str]:
        """Return what is not as it must be, whatever failed."""
        found = [
            f"{number} {what}"
            for what, number in (
                ("PRs", self.pulls),
                ("status comments", self.status_comments),
                ("tasks", len(self.tasks)),
                ("check runs", self.check_runs),
                ("answers, as a PR and on the branch", self.pulls + self.commits),
            )
            if number > 1
        ]
        if any(state.is_open for state in self.tasks):
            found.append("a task is open still")
        if not self.words:
            found.append("no words on the target")
        return found + [f"{state} is not told" for state in self.tasks if _WORDS[state] not in self.words]

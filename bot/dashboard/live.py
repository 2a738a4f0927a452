"""The part of a task's page that changes while the task runs."""

from dataclasses import dataclass

from bot.dashboard.board import Board
from bot.dashboard.task_detail import TaskDetail, trajectory_of
from bot.dashboard.trajectories import Steps, read_steps

_SHOWN_STEPS = 6


@dataclass(frozen=True)
class Snapshot:
    mark: str
    """Changes whenever the part does."""
    html: str
    """Empty where `mark` was seen before."""
    steps: Steps | None
    open: bool


def snapshot(board: Board, task: TaskDetail, seen: str = "") -> Snapshot:
    """Return the live part of a task as it stands."""
    row = task.row
    last = task.attempts[-1].row if task.attempts else None
    mark = f"{len(task.history)}.{len(task.outcomes)}.{row['state']}.{(last['number'], last['steps']) if last else ''}"
    if mark == seen:
        return Snapshot(mark, "", None, row["state"].is_open)
    steps = None
    if row["state"].is_open and last is not None and last["steps"]:
        with board.database.reading() as session:
            attempt = trajectory_of(session, int(row["id"]), int(last["number"]))
        if attempt is not None:
            steps = read_steps(attempt[1], max(0, int(last["steps"]) - _SHOWN_STEPS))
    html = board.pages.get_template("_live.html").render(task=task, steps=steps)
    return Snapshot(mark, html, steps, row["state"].is_open)

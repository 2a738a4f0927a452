"""One task: its page, an attempt's steps, a patch whole, and the page's live part."""

import asyncio
from collections.abc import AsyncIterator

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, PlainTextResponse, StreamingResponse
from sqlmodel import col, select

from bot.dashboard import plots
from bot.dashboard.access import NotFoundError, viewer_of
from bot.dashboard.board import Board
from bot.dashboard.live import Snapshot, snapshot
from bot.dashboard.render import LONGEST_COLOURED
from bot.dashboard.roles import Viewer
from bot.dashboard.row_numbers import RowNumber
from bot.dashboard.show import page
from bot.dashboard.task_detail import TaskDetail, task_detail, trajectory_of
from bot.dashboard.trajectories import read_steps
from store.tables import Attempt

_LOOK_EVERY_S = 0.7
_LONGEST_STREAM_S = 120.0
"""Then the browser connects again, and has to show its session again."""
_NOTHING = "There is no such task, or it belongs to a repository that you cannot read."


def routes(board: Board) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    def found(task_id: int, viewer: Viewer) -> TaskDetail:
        with board.database.reading() as session:
            task = task_detail(session, task_id, viewer, board.settings.github_web_url)
        if task is None:
            raise NotFoundError(_NOTHING)
        return task

    @router.get("/tasks/{task_id}")
    def show_task(request: Request, task_id: RowNumber) -> HTMLResponse:
        viewer = viewer_of(board, request)
        task = found(task_id, viewer)
        specs = board.specs()
        facts = board.facts.current()
        shown = snapshot(board, task)
        return page(
            board,
            request,
            "task.html",
            viewer,
            f"Task {task_id}",
            task=task,
            steps=shown.steps,
            paint=plots.colours(
                {line["model"] for one in task.decisions for line in one.ranked}
                | {attempt.row["model"] for attempt in task.attempts}
            ),
            scripted=frozenset(name for name, spec in specs.items() if spec.scripted),
            names=board.names_for(viewer, facts),
            pr_link=f"{task.web_url}/pull/{task.row['pr_number']}",
            longest_diff=LONGEST_COLOURED,
        )

    @router.get("/tasks/{task_id}/attempts/{number}/steps")
    def show_steps(request: Request, task_id: RowNumber, number: RowNumber, after: RowNumber = 0) -> HTMLResponse:
        viewer = viewer_of(board, request)
        found(task_id, viewer)
        with board.database.reading() as session:
            attempt = trajectory_of(session, task_id, number)
        if attempt is None:
            raise NotFoundError(_NOTHING)
        row, trajectory = attempt
        steps = read_steps(trajectory, max(0, after))
        return page(
            board, request, "steps.html", viewer, f"Task {task_id}, steps", row=row, steps=steps, after=max(0, after)
        )

    @router.get("/tasks/{task_id}/attempts/{number}/patch")
    def show_patch(request: Request, task_id: RowNumber, number: RowNumber) -> PlainTextResponse:
        found(task_id, viewer_of(board, request))
        with board.database.reading() as session:
            query = select(Attempt.patch).where(Attempt.task_id == task_id, col(Attempt.number) == number)
            patch = session.exec(query).first()
        if patch is None:
            raise NotFoundError(_NOTHING)
        name = f"task-{task_id}-attempt-{number}.patch"
        return PlainTextResponse(patch, headers={"Content-Disposition": f'attachment; filename="{name}"'})

    @router.get("/tasks/{task_id}/live")
    async def live(request: Request, task_id: RowNumber) -> StreamingResponse:
        viewer = await run_in_threadpool(viewer_of, board, request)
        first = await run_in_threadpool(found, task_id, viewer)
        return StreamingResponse(
            _events(board, request, viewer, first),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    return router


async def _events(board: Board, request: Request, viewer: Viewer, task: TaskDetail) -> AsyncIterator[str]:
    """Yield the live part of a task's page whenever it has changed, and a last word when the task has ended."""
    task_id = int(task.row["id"])
    seen = ""
    for _ in range(int(_LONGEST_STREAM_S / _LOOK_EVERY_S)):
        if await request.is_disconnected():
            return
        shown = await run_in_threadpool(_look, board, task_id, viewer, seen)
        if shown is None:
            yield _event("ended", "")
            return
        if shown.mark != seen:
            seen = shown.mark
            yield _event("task", shown.html)
        if not shown.open:
            yield _event("ended", "")
            return
        await asyncio.sleep(_LOOK_EVERY_S)


def _look(board: Board, task_id: int, viewer: Viewer, seen: str) -> Snapshot | None:
    with board.database.reading() as session:
        task = task_detail(session, task_id, viewer, board.settings.github_web_url)
    return None if task is None else snapshot(board, task, seen)


def _event(name: str, html: str) -> str:
    lines = "".join(f"data: {line}\n" for line in html.splitlines()) or "data:\n"
    return f"event: {name}\n{lines}\n"

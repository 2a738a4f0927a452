"""What people may change: caps, and another try for what failed. Each change is in the audit log."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse

from bot.dashboard.access import actor_of
from bot.dashboard.board import Board
from bot.dashboard.errors import BadRequestError
from bot.dashboard.health import retry_delivery, retry_task
from bot.dashboard.roles import Role
from bot.dashboard.row_numbers import RowNumber
from workers.errors import BudgetError
from workers.limits import set_limit


def routes(board: Board) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.post("/budgets/caps/{name}")
    def change_cap(
        request: Request,
        name: str,
        csrf: Annotated[str, Form()] = "",
        usd: Annotated[str, Form()] = "",
        back: Annotated[str, Form()] = "",
    ) -> RedirectResponse:
        actor = actor_of(board, request, csrf, Role.ADMIN)
        if not (usd or back):
            raise BadRequestError('usd: write the cap in US dollars. "Back to the setting" takes a changed cap away.')
        try:
            set_limit(board.database, board.settings, name, None if back else float(usd), by=actor.login)
        except ValueError as error:
            raise BadRequestError(f"usd: '{usd[:40]}' is no amount of US dollars.") from error
        except BudgetError as error:
            raise BadRequestError(str(error)) from error
        return _back(f"/budgets?said={'setting' if back else 'cap'}")

    @router.post("/queue/tasks/{task_id}/retry")
    def retry_failed_task(request: Request, task_id: RowNumber, csrf: Annotated[str, Form()] = "") -> RedirectResponse:
        actor = actor_of(board, request, csrf, Role.OPERATOR)
        if not retry_task(board.database, task_id, actor):
            return _back("/queue?said=gone")
        board.queue.work(task_id)
        return _back("/queue?said=task")

    @router.post("/queue/deliveries/{delivery_id}/retry")
    def retry_failed_delivery(
        request: Request, delivery_id: RowNumber, csrf: Annotated[str, Form()] = ""
    ) -> RedirectResponse:
        actor = actor_of(board, request, csrf, Role.OPERATOR)
        if not retry_delivery(board.database, delivery_id, by=actor.login):
            return _back("/queue?said=gone")
        board.queue.deliver(delivery_id)
        return _back("/queue?said=delivery")

    return router


def _back(path: str) -> RedirectResponse:
    return RedirectResponse(path, HTTPStatus.SEE_OTHER)

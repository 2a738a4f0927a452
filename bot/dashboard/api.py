"""The JSON API, described at /api/v1/openapi.json. Tokens: `acrouter token create`."""

from http import HTTPStatus
from importlib.metadata import PackageNotFoundError, version

from fastapi import Depends, FastAPI, Request
from fastapi.responses import JSONResponse, Response
from fastapi.security import HTTPBearer

from bot.dashboard import money, stats
from bot.dashboard.access import ForbiddenError, NotFoundError, NotSignedInError, reader_of
from bot.dashboard.board import Board
from bot.dashboard.caps import caps, limited, reservations
from bot.dashboard.errors import BadRequestError
from bot.dashboard.health import health
from bot.dashboard.overview import overview
from bot.dashboard.periods import DEFAULT_DAYS, of_days
from bot.dashboard.row_numbers import RowNumber
from bot.dashboard.shapes.machinery import BudgetsOut, QueueOut
from bot.dashboard.shapes.numbers import ModelOut, OverviewOut
from bot.dashboard.shapes.tasks import TaskDetailOut, TaskOut, TasksOut
from bot.dashboard.task_detail import task_detail
from bot.dashboard.task_list import list_tasks, parse_filter
from workers.limits import operators_limits

_STATUS: dict[type[Exception], HTTPStatus] = {
    NotSignedInError: HTTPStatus.UNAUTHORIZED,
    ForbiddenError: HTTPStatus.FORBIDDEN,
    NotFoundError: HTTPStatus.NOT_FOUND,
    BadRequestError: HTTPStatus.BAD_REQUEST,
}
_LARGEST_PAGE = 200


def make_api(board: Board) -> FastAPI:
    """Return the API as an application to be mounted."""
    api = FastAPI(
        title="acrouter",
        version=_version(),
        description="What the dashboard shows, as JSON. Send `Authorization: Bearer TOKEN`.",
        docs_url=None,
        redoc_url=None,
        dependencies=[Depends(HTTPBearer(auto_error=False, description="`acrouter token create NAME --scope read`"))],
    )

    @api.get("/overview")
    def get_overview(request: Request, days: int = DEFAULT_DAYS) -> OverviewOut:
        """The numbers of the last 7, 30, 90 or 365 days beside those of the days before."""
        facts = board.facts_for(reader_of(board, request))
        return OverviewOut.of(overview(facts, of_days(days), board.settings))

    @api.get("/models")
    def get_models(request: Request, days: int = DEFAULT_DAYS) -> list[ModelOut]:
        """Each model's numbers."""
        facts = board.facts_for(reader_of(board, request))
        period = of_days(days)
        rows = stats.by_model(stats.within(facts, period), stats.within(facts, period.before()))
        return [ModelOut.of(row) for row in rows]

    @api.get("/tasks")
    def get_tasks(
        request: Request,
        repository: str = "",
        model: str = "",
        dimension: str = "",
        state: str = "",
        person: str = "",
        since: str = "",
        until: str = "",
        text: str = "",
        before: RowNumber | None = None,
        limit: int = 50,
    ) -> TasksOut:
        """Tasks, the newest first, in pages."""
        facts = board.facts_for(reader_of(board, request))
        values = {
            "repository": repository,
            "model": model,
            "dimension": dimension,
            "state": state,
            "person": person,
            "since": since,
            "until": until,
            "text": text,
        }
        if not 1 <= limit <= _LARGEST_PAGE:
            raise BadRequestError(f"limit: {limit} cannot be. Choose from 1 to {_LARGEST_PAGE}.")
        with board.database.reading() as session:
            found = list_tasks(session, facts, parse_filter(values), before=before, page=limit)
        return TasksOut(
            total=found.total, tasks=[TaskOut.of(line) for line in found.lines], next_before=found.next_before
        )

    @api.get("/tasks/{task_id}")
    def get_task(request: Request, task_id: RowNumber) -> TaskDetailOut:
        """One task with its decisions, attempts, history and outcomes."""
        reader = reader_of(board, request)
        with board.database.reading() as session:
            found = task_detail(session, task_id, reader, board.settings.github_web_url)
        if found is None:
            raise NotFoundError("There is no such task, or you cannot read its repository.")
        return TaskDetailOut.of(found, board.names_for(reader, board.facts.current()))

    @api.get("/budgets")
    def get_budgets(request: Request) -> BudgetsOut:
        """Caps with what counts against them, and where the month is heading."""
        reader = reader_of(board, request)
        facts = board.facts.current()
        with board.database.reading() as session:
            limits = operators_limits(session, board.settings)
            reserved = reservations(session)
            others = limited(session, facts, limits, reader, reserved)
        shown = caps(facts, limits, reserved)
        return BudgetsOut.made(shown, others, limits, money.forecast(facts, shown[1].limit_usd))

    @api.get("/queue")
    def get_queue(request: Request) -> QueueOut:
        """What waits, runs and failed."""
        reader = reader_of(board, request)
        with board.database.reading() as session:
            found = health(session, board.facts_for(reader), reader, board.settings)
        return QueueOut(
            open_tasks=found.states,
            lag_s=found.lag_s,
            deliveries_one_day=found.deliveries,
            workers_alive=sum(worker.alive for worker in found.workers),
            failed_tasks=len(found.failed_tasks),
            failed_deliveries=len(found.failed_deliveries),
        )

    def refuse(_request: Request, error: Exception) -> Response:
        status = _STATUS[type(error)]
        headers = {"WWW-Authenticate": "Bearer"} if status is HTTPStatus.UNAUTHORIZED else None
        return JSONResponse({"detail": str(error)}, status, headers)

    for kind in _STATUS:
        api.add_exception_handler(kind, refuse)
    return api


def _version() -> str:
    try:
        return version("acrouter")
    except PackageNotFoundError:
        return "0"

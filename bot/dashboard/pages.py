"""The pages with numbers: overview, models, tasks, budgets, queue, and what the numbers mean."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from markdown_it import MarkdownIt
from markupsafe import Markup

import templates
from bot.dashboard import money, plots, stats
from bot.dashboard.access import viewer_of
from bot.dashboard.beliefs import beliefs
from bot.dashboard.board import Board
from bot.dashboard.caps import MOST_CAPS, caps, limited, reservations
from bot.dashboard.health import endpoints, health, with_breakers
from bot.dashboard.overview import overview, why_in_a_sentence
from bot.dashboard.periods import DEFAULT_DAYS, LENGTHS, of_days
from bot.dashboard.roles import Role
from bot.dashboard.row_numbers import RowNumber
from bot.dashboard.search import TEXTS
from bot.dashboard.show import page
from bot.dashboard.task_detail import task_detail
from bot.dashboard.task_list import choices, latest, list_tasks, parse_filter
from routing.pool import ModelSpec
from store.types import utc_now
from workers.limits import operators_limits

_NEWEST = 6


def routes(board: Board) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.get("/overview")
    def show_overview(request: Request, days: int = DEFAULT_DAYS) -> HTMLResponse:
        viewer = viewer_of(board, request)
        facts = board.facts_for(viewer)
        specs = board.specs()
        view = overview(facts, of_days(days), board.settings)
        names = [row.model for row in view.models]
        last_id = latest(facts)
        with board.database.reading() as session:
            newest = list_tasks(session, facts, parse_filter({}), page=_NEWEST)
            last = None
            if last_id is not None:
                last = task_detail(session, last_id, viewer, board.settings.github_web_url)
        decided = list(last.decision.ranked) if last and last.decision else []
        paint = plots.colours({*names, *(line.model for line in newest.lines), *(one["model"] for one in decided)})
        return page(
            board,
            request,
            "overview.html",
            viewer,
            "Overview",
            anything=bool(len(facts.tasks)),
            view=view,
            period=view.period,
            lengths=LENGTHS,
            paint=paint,
            scripted=_scripted(specs),
            plot=plots.scatter(view.points, paint),
            spend_chart=plots.chart(view.series, paint, "spend"),
            success_chart=plots.chart(view.series, paint, "success"),
            last=last,
            why=why_in_a_sentence(last.decision.reasons) if last and last.decision else "",
            names=board.names_for(viewer, facts),
            lines=newest.lines,
            total=newest.total,
            trigger_label=board.settings.trigger_label,
        )

    @router.get("/models")
    def show_models(request: Request, days: int = DEFAULT_DAYS) -> HTMLResponse:
        viewer = viewer_of(board, request)
        facts = board.facts_for(viewer)
        period = of_days(days)
        now = stats.within(facts, period)
        rows = stats.by_model(now, stats.within(facts, period.before()))
        specs = board.specs()
        with board.database.reading() as session:
            believed = beliefs(session)
            reachable = with_breakers(session, endpoints(facts, utc_now().timestamp()), viewer)
        names = sorted({name for cells in believed.values() for name in cells})
        return page(
            board,
            request,
            "models.html",
            viewer,
            "Models",
            rows=rows,
            period=period,
            lengths=LENGTHS,
            dimensions=stats.by_dimension(now),
            beliefs=believed,
            believed=names,
            paint=plots.colours({*(row.model for row in rows), *names}),
            scripted=_scripted(specs),
            prices={name: (spec.input_usd_per_mtok, spec.output_usd_per_mtok) for name, spec in specs.items()},
            endpoints={one.model: one for one in reachable},
        )

    @router.get("/tasks")
    def show_tasks(request: Request, before: RowNumber | None = None) -> HTMLResponse:
        viewer = viewer_of(board, request)
        facts = board.facts_for(viewer)
        wanted = parse_filter(request.query_params)
        with board.database.reading() as session:
            found = list_tasks(session, facts, wanted, before=before)
        return page(
            board,
            request,
            "tasks.html",
            viewer,
            "Tasks",
            wanted=wanted,
            choices=choices(facts),
            page=found,
            lines=found.lines,
            before=before,
            searched_texts=TEXTS,
            query=wanted.query(),
            next_query=wanted.query(before=found.next_before),
            paint=plots.colours({line.model for line in found.lines}),
            scripted=_scripted(board.specs()),
        )

    @router.get("/budgets")
    def show_budgets(request: Request, before: RowNumber | None = None, said: str = "") -> HTMLResponse:
        viewer = viewer_of(board, request)
        everything = board.facts.current()
        facts = everything.of_repositories(viewer.repositories)
        with board.database.reading() as session:
            limits = operators_limits(session, board.settings)
            reserved = reservations(session)
            others = limited(session, everything, limits, viewer, reserved)
            ledger, next_before = money.ledger_page(session, facts, viewer, before=before)
            audit = money.audit_page(session) if viewer.may(Role.ADMIN) else ()
        shown = caps(everything, limits, reserved)
        return page(
            board,
            request,
            "budgets.html",
            viewer,
            "Budgets",
            caps=shown,
            limits=limits,
            others=others[:MOST_CAPS],
            others_left_out=max(0, len(others) - MOST_CAPS),
            forecast=money.forecast(everything, shown[1].limit_usd),
            spent=money.spenders(facts, money.month_start_day()),
            ledger=ledger,
            next_before=next_before,
            audit=audit,
            said=_SAID.get(said, ""),
        )

    @router.get("/queue")
    def show_queue(request: Request, said: str = "") -> HTMLResponse:
        viewer = viewer_of(board, request)
        facts = board.facts_for(viewer)
        with board.database.reading() as session:
            found = health(session, facts, viewer, board.settings)
        return page(
            board,
            request,
            "queue.html",
            viewer,
            "Queue and health",
            health=found,
            running=sum(count for state, count in found.states.items() if state != "queued"),
            alive=sum(worker.alive for worker in found.workers),
            rates=board.rates_for(viewer, facts),
            said=_SAID.get(said, ""),
        )

    @router.get("/numbers")
    def show_numbers(request: Request) -> HTMLResponse:
        return page(board, request, "numbers.html", viewer_of(board, request), "What the numbers mean", text=_numbers())

    return router


_SAID = {
    "cap": "The cap is changed. It holds from the next call on.",
    "setting": "The cap is the setting's again. It holds from the next call on.",
    "task": "The task is back in the queue.",
    "delivery": "The webhook is back in the inbox.",
    "gone": "It cannot be retried any more: its state has changed, or its target is being worked on.",
}
"""Sentences after a change, by the word in the address: nobody else's words show on a page."""


def _scripted(specs: Mapping[str, ModelSpec]) -> frozenset[str]:
    return frozenset(name for name, spec in specs.items() if spec.scripted)


@cache
def _numbers() -> Markup:
    """Return the explanation of the numbers, which is our own Markdown."""
    text = (Path(templates.__file__).resolve().parent / "pages" / "numbers.md").read_text(encoding="utf-8")
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    return Markup(html)  # noqa: S704

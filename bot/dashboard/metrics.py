"""Prometheus metrics of the installation, read from the database at each scrape (docs/grafana has a board for them)."""

from collections.abc import Iterator

import numpy as np
from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from bot.dashboard import verdicts
from bot.dashboard.access import metrics_reader
from bot.dashboard.board import Board
from bot.dashboard.caps import caps, reservations
from bot.dashboard.facts import TASK_STATES, Facts, present
from bot.dashboard.health import health
from bot.dashboard.roles import Role, Viewer
from bot.dashboard.stats import MICROS
from workers.limits import operators_limits

_SEES_ALL = Viewer("metrics", Role.VIEWER, None)


def routes(board: Board) -> APIRouter:
    router = APIRouter(include_in_schema=False)
    registry = CollectorRegistry()
    registry.register(_Installation(board))

    @router.get("/metrics")
    def metrics(request: Request) -> Response:
        metrics_reader(board, request)
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    return router


class _Installation(Collector):
    def __init__(self, board: Board) -> None:
        self._board = board

    def describe(self) -> list[Metric]:
        """Return nothing: registering must not ask the database."""
        return []

    def collect(self) -> Iterator[Metric]:
        board = self._board
        facts = board.facts.current()
        with board.database.reading() as session:
            shown = caps(facts, operators_limits(session, board.settings), reservations(session))
            state = health(session, facts, _SEES_ALL, board.settings)
        yield from _of_tasks(facts)
        yield from _of_attempts(facts)
        spend = CounterMetricFamily("acrouter_spend_usd", "Settled and assumed, in US dollars.", labels=["model"])
        for code in np.unique(facts.spend.model):
            total = float(facts.spend.micros[facts.spend.model == code].sum()) / MICROS
            spend.add_metric([facts.models.names[int(code)]], total)
        yield spend
        limit = GaugeMetricFamily("acrouter_cap_limit_usd", "What a cap allows.", labels=["cap"])
        used = GaugeMetricFamily("acrouter_cap_used_usd", "What counts against a cap.", labels=["cap"])
        for cap in shown:
            limit.add_metric([cap.name], cap.limit_usd)
            used.add_metric([cap.name], cap.used_usd)
        yield from (limit, used)
        yield GaugeMetricFamily("acrouter_queue_lag_seconds", "Age of the oldest task that is due.", value=state.lag_s)
        alive = sum(worker.alive for worker in state.workers)
        yield GaugeMetricFamily("acrouter_workers_alive", "Workers seen within two minutes.", value=alive)
        deliveries = GaugeMetricFamily("acrouter_deliveries_one_day", "Webhooks of one day.", labels=["state"])
        for name, count in state.deliveries.items():
            deliveries.add_metric([name], count)
        yield deliveries
        broken = GaugeMetricFamily("acrouter_endpoint_unusable", "Share of a day's attempts.", labels=["model"])
        for endpoint in state.endpoints:
            if endpoint.attempts:
                broken.add_metric([endpoint.model], endpoint.unusable / endpoint.attempts)
        yield broken
        passed_over = GaugeMetricFamily(
            "acrouter_endpoint_passed_over", "1 while a model is passed over, as its endpoint fails.", labels=["model"]
        )
        for endpoint in state.endpoints:
            passed_over.add_metric([endpoint.model], endpoint.retry_at is not None)
        yield passed_over
        yield GaugeMetricFamily(
            "acrouter_breakers_open", "Targets at which no more tasks start for now.", value=len(state.breakers)
        )
        left = GaugeMetricFamily("acrouter_github_calls_left", "Of GitHub's rate limit.", labels=["account"])
        for rates in board.rates.last():
            left.add_metric([rates.account], rates.left)
        yield left


def _of_tasks(facts: Facts) -> Iterator[Metric]:
    tasks = GaugeMetricFamily("acrouter_tasks", "Tasks by the state they are in.", labels=["state"])
    counts = np.bincount(facts.tasks.state, minlength=len(TASK_STATES))
    for state, count in zip(TASK_STATES, counts.tolist(), strict=True):
        tasks.add_metric([str(state)], count)
    yield tasks


def _of_attempts(facts: Facts) -> Iterator[Metric]:
    attempts = GaugeMetricFamily("acrouter_attempts", "Attempts by model and result.", labels=["model", "result"])
    results = {
        "merged": verdicts.won_attempts(facts),
        "lost": verdicts.lost_attempts(facts),
        "waiting": verdicts.waiting_attempts(facts),
        "unusable": verdicts.unusable_attempts(facts),
    }
    for code in present(facts.attempts.model):
        mine = facts.attempts.model == code
        for result, found in results.items():
            attempts.add_metric([facts.models.names[int(code)], result], int((found & mine).sum()))
    yield attempts

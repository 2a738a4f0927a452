"""A model whose endpoint fails is passed over by all workers for a while, then tried by one of them."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from sqlmodel import Session

from routing import RoutingDecision
from routing.errors import NoModelLeft
from routing.types import RankedModel
from sandbox.agent_types import AgentRun
from store.database import Database
from store.states import AttemptState, TaskKind
from store.tables import ModelEndpoint
from store.types import utc_now
from tests.support.forge import make_runtime
from tests.support.routing import make_task
from tests.support.rows import add_task, settings
from workers import attempts, leases, recovery
from workers.attempts import Attempted
from workers.breakers import FAILURES, EndpointBreakers, pause
from workers.errors import NoEndpointAnswers
from workers.pipeline import next_decision
from workers.run import Run
from workers.runtime import Runtime


class Clock:
    """A time that stands still until a test moves it."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def fail(session: Session, breakers: EndpointBreakers, times: int = FAILURES, model: str = "small") -> None:
    for number in range(times):
        breakers.failed(session, model, f"failure {number}", breakers.now())


def test_a_model_is_passed_over_after_failures_in_a_row_and_no_sooner(database: Database) -> None:
    clock = Clock()
    breakers = EndpointBreakers(clock)
    with database.session() as session:
        fail(session, breakers, FAILURES - 1)
        breakers.answered(session, "small")
        fail(session, breakers, FAILURES - 1)
        assert not breakers.open(session)
        fail(session, breakers, 1)
        breakers.failed(session, "large", "once", clock.now)
        assert breakers.open(session) == {"small": clock.now + pause(FAILURES)}


def test_after_the_pause_one_attempt_tries_and_the_others_wait_for_it(database: Database) -> None:
    clock = Clock()
    breakers = EndpointBreakers(clock)
    with database.session() as session:
        fail(session, breakers)
        clock.now += pause(FAILURES)
        assert not breakers.open(session)
        breakers.tried(session, "small")
        assert set(breakers.open(session)) == {"small"}
        breakers.answered(session, "small")
        assert not breakers.open(session)
        assert session.get(ModelEndpoint, "small") is None, "a model that answers has no row"


def test_each_further_failure_doubles_the_pause_up_to_half_an_hour(database: Database) -> None:
    clock = Clock()
    breakers = EndpointBreakers(clock)
    pauses = []
    with database.session() as session:
        fail(session, breakers, FAILURES - 1)
        for _ in range(7):
            fail(session, breakers, 1)
            pauses.append((breakers.open(session)["small"] - clock.now) // timedelta(minutes=1))
            clock.now = breakers.open(session)["small"]
    assert pauses == [1, 2, 4, 8, 16, 30, 30]


def test_attempts_at_once_that_one_outage_ends_do_not_double_the_pause(database: Database) -> None:
    clock = Clock()
    breakers = EndpointBreakers(clock)
    began = clock.now
    with database.session() as session:
        for _ in range(8):
            clock.now += timedelta(seconds=1)
            breakers.failed(session, "small", "HTTP 503", began)
        assert breakers.open(session) == {"small": clock.now + pause(FAILURES)}
        clock.now += pause(FAILURES)
        breakers.failed(session, "small", "HTTP 503", began=clock.now)
        assert breakers.open(session) == {"small": clock.now + pause(FAILURES + 1)}


def test_what_an_endpoint_said_is_kept_without_its_secrets(database: Database) -> None:
    with database.session() as session:
        EndpointBreakers().failed(session, "small", "HTTP 401 for key sk-ant-api03-" + "a" * 80, utc_now())
    with database.reading() as session:
        assert "sk-ant" not in session.get_one(ModelEndpoint, "small").error


@pytest.fixture
def run(database: Database) -> Iterator[Run]:
    lease = leases.take(database, add_task(database), "worker", 60)
    assert lease is not None
    with lease:
        yield Run(make_runtime(database, settings()), lease)


def attempt_ends(run: Run, ending: str, model: str = "small") -> Attempted:
    decision = RoutingDecision((RankedModel(model, 1.0, 1.0, 0.5, 0.1),), (), (), ())
    attempt = attempts.begin(run, decision)
    attempts.finish(run, attempt, AgentRun(ending, 1, 10, 10, 0.01, "half a patch", {}, "HTTP 503"))
    return Attempted(attempt, None)


def work(**config: Any) -> Any:
    """What `next_decision` looks at of a task's context."""
    asked: dict[str, Any] = {"max_attempts": None, "escalation": "on", "exploration": "on"} | config
    models = SimpleNamespace(allow=asked.pop("allow", ()), deny=())
    return SimpleNamespace(
        environment=SimpleNamespace(missing=()),
        source=SimpleNamespace(config=SimpleNamespace(models=models, **asked)),
        routing_task=make_task("task:1", "A bug"),
    )


def chosen(run: Run, **config: Any) -> str:
    decision = next_decision(run, work(**config), [])
    assert decision is not None
    return decision.chosen


def open_endpoints(runtime: Runtime) -> set[str]:
    with runtime.database.reading() as session:
        return set(runtime.breakers.open(session))


def test_only_an_endpoint_that_failed_counts(run: Run) -> None:
    for _ in range(FAILURES):
        attempt_ends(run, "ModelError", "small")
        attempt_ends(run, "SandboxError", "medium")
        attempt_ends(run, "Stopped", "medium")
        attempt_ends(run, "LimitsExceeded", "large")
    assert open_endpoints(run.runtime) == {"small"}
    attempt_ends(run, "Submitted", "small")
    assert open_endpoints(run.runtime) == set()


def test_requests_that_are_refused_have_their_model_passed_over_for_the_first_pause_and_never_longer(
    database: Database,
) -> None:
    clock = Clock()
    breakers = EndpointBreakers(clock)
    with database.session() as session:
        for _ in range(FAILURES - 1):
            breakers.refused(session, "small", "HTTP 400")
        assert not breakers.open(session)
        for _ in range(5):  # the words of one repository, which goes on trying
            breakers.refused(session, "small", "HTTP 400")
            assert breakers.open(session) == {"small": clock.now + pause(FAILURES)}
            clock.now += pause(FAILURES)
        assert not breakers.open(session)
        breakers.answered(session, "small")  # those of another
        breakers.refused(session, "small", "HTTP 400")
        assert not breakers.open(session)


def test_a_task_whose_words_are_refused_goes_on_to_another_model_and_waits_for_none(run: Run) -> None:
    made = [attempt_ends(run, "RequestRefused", "small")]
    assert made[0].attempt.state is AttemptState.FAILED
    decision = next_decision(run, work(), made)
    assert decision is not None
    assert decision.chosen != "small"
    made += [attempt_ends(run, "RequestRefused", model) for model in ("medium", "large")]
    assert next_decision(run, work(), made) is None


def test_the_router_chooses_another_model_meanwhile(run: Run) -> None:
    for _ in range(FAILURES):
        attempt_ends(run, "ModelError", "small")
    for _ in range(20):
        assert chosen(run) != "small"


def test_a_model_that_a_person_asked_for_is_tried_all_the_same(run: Run) -> None:
    for _ in range(FAILURES):
        attempt_ends(run, "ModelError", "small")
    run.update(pinned_model="small")
    assert chosen(run) == "small"


def test_where_no_endpoint_answers_the_task_waits_for_the_first_that_may_be_tried(run: Run) -> None:
    for model in ("small", "medium", "large"):
        for _ in range(FAILURES):
            attempt_ends(run, "ModelError", model)
    with run.runtime.database.reading() as session:
        first = min(run.runtime.breakers.open(session).values())
    with pytest.raises(NoEndpointAnswers) as waits:
        chosen(run)
    assert waits.value.retry_at == first


def test_a_task_that_no_model_may_work_on_does_not_wait_for_endpoints(run: Run) -> None:
    for _ in range(FAILURES):
        attempt_ends(run, "ModelError", "small")
    run.update(budget_usd=0.000001)
    with pytest.raises(NoModelLeft):
        chosen(run)


def test_a_task_whose_own_attempts_the_outage_ended_waits_with_the_others(run: Run) -> None:
    made: list[Attempted] = []
    for _ in range(3):  # as many as a task may make
        decision = next_decision(run, work(), made)
        assert decision is not None
        made.append(attempt_ends(run, "ModelError", decision.chosen))
    assert {attempted.attempt.model for attempted in made} == {"small", "medium", "large"}
    assert not open_endpoints(run.runtime), "one failure of each opens no breaker"
    with pytest.raises(NoEndpointAnswers, match="large, medium, small"):
        next_decision(run, work(), made)
    assert recovery.attempts_so_far(run, work()) == [], "and all of them are tried anew after the wait"


@pytest.mark.parametrize("values", [{"pinned_model": "small"}, {"kind": TaskKind.LOCAL}])
def test_who_asked_for_one_model_or_sits_before_the_command_line_hears_at_once(
    run: Run, values: dict[str, Any]
) -> None:
    run.update(**values)
    made = [attempt_ends(run, "ModelError", model) for model in ("small", "medium", "large")]
    assert next_decision(run, work(), made) is None


def test_a_task_with_a_verdict_does_not_wait_for_other_models(run: Run) -> None:
    judged = attempt_ends(run, "Submitted", "small")
    judged.attempt.state, judged.attempt.score = AttemptState.VERIFIED, 0.0
    for model in ("medium", "large"):
        for _ in range(FAILURES):
            attempt_ends(run, "ModelError", model)
    assert next_decision(run, work(), [judged]) is None


def test_a_wait_ends_when_an_endpoint_answers_and_not_when_it_is_tried(run: Run) -> None:
    since = utc_now() - timedelta(hours=3)
    run.update(waiting_since=since)
    attempt_ends(run, "ModelError")
    assert run.task().waiting_since == since
    attempt_ends(run, "Submitted")
    assert run.task().waiting_since is None


def test_a_task_waits_for_the_models_that_its_repository_may_use_and_names_no_others(run: Run) -> None:
    for model in ("small", "medium", "large", "left-the-pool"):
        for _ in range(FAILURES):
            attempt_ends(run, "ModelError", model)
    with run.runtime.database.reading() as session:
        medium = run.runtime.breakers.open(session)["medium"]
    with pytest.raises(NoEndpointAnswers) as waits:
        chosen(run, allow=["medium"])
    assert waits.value.retry_at == medium
    assert str(waits.value).startswith("The endpoints of medium fail;")

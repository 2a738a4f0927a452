"""The workers, who decide again after each failure, believe what the library does, which goes on from its decision."""

import pytest

from routing import Router
from store.database import Database
from store.states import AttemptState
from store.tables import Attempt
from tests.support.routing import make_pool
from tests.support.rows import add_attempt, add_task
from workers.brain import Brain

TEXT = "parse_date raises IndexError on empty strings, where it should return None."


def test_the_workers_take_the_librarys_next_step(sqlite_database: Database) -> None:
    router = Router(make_pool(), seed=1)
    brain = Brain(router, sqlite_database, 100)
    task_id = add_task(sqlite_database)
    task = router.task(f"task:{task_id}", TEXT)
    tried: dict[str, float] = {}
    first = brain.choose(task, explore=False)
    costs = {line.model: line.expected_cost_usd for line in first.ranked}
    following = first.chosen
    for number in (1, 2):
        attempt_id = add_attempt(
            sqlite_database,
            task_id,
            number=number,
            model=following,
            state=AttemptState.VERIFIED,
            score=0.0,
            cost_usd=costs[following],
        )
        with sqlite_database.session() as session:
            attempt = session.get_one(Attempt, attempt_id)
            session.expunge(attempt)
        evidence = brain.learn(task, attempt)
        with sqlite_database.session() as session:
            brain.keep(session, evidence)
        tried[following] = 0.0
        theirs = brain.escalate(task, tried, budget_usd=50.0)
        ours = router.escalate(task, first, tried, 50.0)
        assert theirs is not None
        assert ours is not None
        assert theirs.chosen == ours.model
        assert theirs.ranked[0].expected_score == pytest.approx(ours.expected_score, abs=0.005)
        following = ours.model

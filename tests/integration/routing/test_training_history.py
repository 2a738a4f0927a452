"""What the voters that are models are trained on: the attempts that an installation remembers."""

from datetime import date

from routing.encoders.hashing import HashingEncoder
from routing.evidence_store import save
from routing.pool import ModelPool
from routing.training.examples import Result, read_history
from routing.types import Evidence
from store.database import Database
from tests.support.routing import make_evidence, make_pool

TEXT = "parse_date crashes on empty strings"


def kept(database: Database, *evidence: Evidence) -> None:
    with database.session() as session:
        for one in evidence:
            save(session, one, HashingEncoder())


def test_a_tasks_attempts_are_one_example_with_each_models_last_result(database: Database) -> None:
    kept(
        database,
        make_evidence("1", "small", 0.0, task_key="a", title="Dates", text=TEXT, repository="o/r", minutes=1),
        make_evidence("2", "large", 1.0, task_key="a", title="Dates", text=TEXT, repository="o/r", minutes=2),
        make_evidence("3", "small", 1.0, task_key="a", title="Dates", text=TEXT, repository="o/r", minutes=3),
        make_evidence("4", "small", 1.0, task_key="b", minutes=4),  # its words are not known
    )
    [example] = read_history(database)
    assert (example.key, example.title, example.text, example.repository) == ("a", "Dates", TEXT, "o/r")
    assert example.results == {"small": Result(1.0, 0.05), "large": Result(1.0, 0.05)}


def test_what_a_name_once_stood_for_is_another_model(database: Database) -> None:
    specs = make_pool().models
    pool = ModelPool(tuple(spec.model_copy(update={"since": date(2026, 1, 2)}) for spec in specs))
    kept(
        database,
        make_evidence("1", "small", 0.0, task_key="a", text=TEXT),
        make_evidence("2", "small", 1.0, task_key="b", text=TEXT, minutes=24 * 60),
    )
    assert [list(example.results) for example in read_history(database, pool)] == [
        ["small before 2026-01-02"],
        ["small"],
    ]

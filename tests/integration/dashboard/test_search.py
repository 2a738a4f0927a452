"""A search looks into the titles of all tasks and into the texts of the newest, on both databases."""

import pytest

from bot.dashboard import search
from bot.dashboard.facts_store import read_facts
from bot.dashboard.task_list import list_tasks, parse_filter
from store.database import Database
from tests.support.rows import add_repository, add_task


def found(database: Database, text: str, **others: str) -> list[str]:
    """Titles of the tasks that a filter lets through, the newest first."""
    facts = read_facts(database)
    with database.reading() as session:
        return [line.title for line in list_tasks(session, facts, parse_filter({"text": text, **others})).lines]


def test_words_are_found_in_the_title_or_the_text_in_either_case(database: Database) -> None:
    add_task(database, title="Crash at start", text="The parser meets an EMPTY file.")
    add_task(database, title="Empty cart", text="Its total is wrong.")
    add_task(database, title="Something else", text="Nothing of it.")
    assert found(database, "empty") == ["Empty cart", "Crash at start"]
    assert found(database, "PARSER") == ["Crash at start"]
    assert found(database, "crash empty") == ["Crash at start"], "one word is in the title, the other in the text"
    assert found(database, "crash total") == []


@pytest.mark.parametrize("sign", ["%", "_", "\\", "'", "50%", "a_b", "c:\\d"])
def test_a_sign_that_means_something_to_the_database_is_looked_for_as_it_stands(database: Database, sign: str) -> None:
    add_task(database, title="One", text=f"It says {sign} here.")
    add_task(database, title="Two", text="It says 50 percent of aXb in c:d here.")
    assert found(database, sign) == ["One"]


def test_a_search_keeps_to_the_other_filters(database: Database) -> None:
    add_repository(database, 43, "octo/secret")
    add_task(database, title="Mine", text="A refund is lost.", requested_by="ada")
    add_task(database, title="Theirs", text="A refund is lost.", repository_id=43, target="43/issues/1")
    assert found(database, "refund", repository="octo/tools") == ["Mine"]
    assert found(database, "refund", person="ada") == ["Mine"]
    facts = read_facts(database).of_repositories([42])
    with database.reading() as session:
        page = list_tasks(session, facts, parse_filter({"text": "refund"}))
    assert [line.title for line in page.lines] == ["Mine"], "nobody finds what they cannot read"


def test_texts_of_tasks_newer_than_all_that_one_may_see_are_not_read(database: Database) -> None:
    add_repository(database, 43, "octo/busy")
    mine = add_task(database, title="Mine", text="A refund is lost.")
    for number in range(3):
        add_task(database, title="Theirs", text="A refund is lost.", repository_id=43, target=f"43/issues/{number}")
    facts = read_facts(database).of_repositories([42])
    with database.reading() as session:
        assert search.in_texts(session, int(facts.tasks.id[-1]), ["refund"]) == [mine]


def test_nobody_who_may_see_nothing_finds_anything(database: Database) -> None:
    add_task(database, title="Mine", text="A refund is lost.")
    facts = read_facts(database).of_repositories([])
    with database.reading() as session:
        assert list_tasks(session, facts, parse_filter({"text": "refund"})).lines == ()


def test_texts_of_the_newest_tasks_alone_are_looked_at(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "TEXTS", 2)
    for number in range(4):
        add_task(database, title=f"Task {number}", text="A refund is lost.")
    assert found(database, "refund") == ["Task 3", "Task 2"]
    assert found(database, "task 0") == ["Task 0"], "titles of all of them are"

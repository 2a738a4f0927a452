"""Tasks by their words: the titles of all of them, and the texts of the newest.

Titles are in memory. Texts are not, and for a word that is in none of them a database reads them all: so only those of
the newest `TEXTS` tasks are looked at, counted back from the newest that one may see. There a letter from A to Z is
found in either case, in titles every letter.
"""

from collections.abc import Sequence
from itertools import compress, repeat
from operator import contains
from typing import Any

import numpy as np
from sqlalchemy import ColumnElement
from sqlmodel import Session, col, func, or_, select

from bot.dashboard.facts import Facts, Ints
from store.tables import Task

TEXTS = 5_000


def holding(session: Session, facts: Facts, rows: Ints, text: str) -> Ints:
    """Return those of some rows of the tasks, in order, that hold each of the text's words in title or text."""
    words = text.split()
    if not len(rows) or not words:
        return rows
    ids = facts.tasks.id[rows]
    by_text = in_texts(session, int(facts.tasks.id[-1]), words)
    return np.union1d(_by_title(facts, rows, words), rows[np.isin(ids, by_text)])


def _by_title(facts: Facts, rows: Ints, words: Sequence[str]) -> Ints:
    titles = list(map(facts.titles.lower.__getitem__, facts.tasks.title[rows].tolist()))
    # The longest word first: it leaves the fewest titles to look for the others in.
    for word in sorted(words, key=len, reverse=True):
        hits = np.fromiter(map(contains, titles, repeat(word.lower())), dtype=bool, count=len(titles))
        rows, titles = rows[hits], list(compress(titles, hits.tolist()))
    return rows


def in_texts(session: Session, newest: int, words: Sequence[str]) -> Sequence[int]:
    """Return the ids of those of the `TEXTS` tasks up to the newest that hold each word, in text or title.

    Nothing in a word means anything to the database.
    """
    sqlite = session.get_bind().dialect.name == "sqlite"
    query = select(Task.id).where(col(Task.id) > newest - TEXTS, col(Task.id) <= newest)
    for word in words:
        query = query.where(or_(*(_holds(column, word, sqlite) for column in (col(Task.text), col(Task.title)))))
    return [number for number in session.exec(query).all() if number is not None]


def _holds(column: Any, word: str, sqlite: bool) -> ColumnElement[bool]:
    lower = word.encode().lower().decode()  # of A to Z alone, as both databases do it here
    if sqlite:
        return func.instr(func.lower(column), lower) > 0
    return func.strpos(func.lower(column.collate("C")), lower) > 0  # a language's rules would take ten times as long

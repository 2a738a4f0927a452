"""Tells which bug of the catalogue a prompt is about."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bot.demo.bugs import Bug
from bot.demo.materialise import BugRepository


def recognise(messages: Sequence[Mapping[str, Any]], repositories: Iterable[BugRepository]) -> BugRepository | None:
    """Return the bug that the conversation's opening names: by its issue's title, or, for a failed CI run, by a test.

    Only the messages before the first answer count: what the commands printed since may name anything. Where several
    bugs are named, the one named first is meant.
    """
    opening = _letters(" ".join(_texts(messages)))
    places = [
        (min(found), number, repository)
        for number, repository in enumerate(repositories)
        if (found := [place for phrase in _phrases(repository.bug) if (place := opening.find(phrase)) >= 0])
    ]
    return min(places)[2] if places else None


def _phrases(bug: Bug) -> Iterable[str]:
    yield _letters(bug.title)
    for node in bug.hidden.ids:
        yield _letters(node.rpartition("::")[2].partition("[")[0])
    for name in re.findall(r"def (test_\w+)", bug.regression_test.text):
        yield _letters(name)


def _texts(messages: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    for message in messages:
        if message.get("role") == "assistant":
            return
        content = message.get("content")
        if isinstance(content, str):
            yield content
        elif isinstance(content, list):
            yield from (str(part.get("text", "")) for part in content if isinstance(part, dict))


def _letters(text: str) -> str:
    """Return only letters and digits, lower case: quoting and escaping in the prompt change nothing."""
    return re.sub(r"[^a-z0-9]+", "", text.lower())

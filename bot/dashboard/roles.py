"""Who may look, and who may do more: roles, and the lists in the settings that give them."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from store.errors import ConfigurationError

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,99})"
_ORGANISATION = re.compile(_NAME)
_TEAM = re.compile(rf"({_NAME})/([A-Za-z0-9_.-]{{1,100}})")
_PERSON = re.compile(rf"@({_NAME}(?:\[bot\])?)")


class Role(StrEnum):
    VIEWER = "viewer"
    """Looks."""
    OPERATOR = "operator"
    """Retries what failed, too."""
    ADMIN = "admin"
    """Changes caps and reads the audit log, too."""

    def may(self, needed: "Role") -> bool:
        """Return whether this role includes another."""
        order = tuple(Role)
        return order.index(self) >= order.index(needed)


@dataclass(frozen=True)
class Viewer:
    """Somebody who is signed in, or a token that reads."""

    login: str
    role: Role
    repositories: tuple[int, ...] | None
    """Ids of what they can read on GitHub; None: everything, local tasks too."""
    csrf: str = ""
    """Goes into each form; a page of another site does not know it."""

    def may(self, needed: Role) -> bool:
        return self.role.may(needed)

    def can_read(self, repository_id: int | None) -> bool:
        return self.repositories is None or repository_id in self.repositories


@dataclass(frozen=True)
class Circle:
    """People, organisations and teams, all in lower case, as GitHub compares them."""

    people: frozenset[str] = frozenset()
    organisations: frozenset[str] = frozenset()
    teams: frozenset[tuple[str, str]] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.people or self.organisations or self.teams)


def parse_circle(text: str, setting: str) -> Circle:
    """Read `octo, octo/core, @ada`.

    Raises:
        ConfigurationError: an entry is none of the three; the message names the setting and the entry.
    """
    people, organisations, teams = set(), set(), set()
    for entry in (part.strip() for part in text.split(",")):
        if not entry:
            continue
        if person := _PERSON.fullmatch(entry):
            people.add(person[1].lower())
        elif team := _TEAM.fullmatch(entry):
            teams.add((team[1].lower(), team[2].lower()))
        elif _ORGANISATION.fullmatch(entry):
            organisations.add(entry.lower())
        else:
            raise ConfigurationError(
                f"{setting}: '{entry}' is no organisation (octo), team (octo/core) or person (@ada)."
            )
    return Circle(frozenset(people), frozenset(organisations), frozenset(teams))


def merged_circle(circles: Iterable[Circle]) -> Circle:
    """Return everybody of several circles."""
    given: Sequence[Circle] = tuple(circles)
    return Circle(
        frozenset().union(*(one.people for one in given)),
        frozenset().union(*(one.organisations for one in given)),
        frozenset().union(*(one.teams for one in given)),
    )

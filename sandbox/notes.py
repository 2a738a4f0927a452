"""A repository's notes for contributors, which tell an agent its customs."""

from pathlib import Path

from sandbox.archives import read_member

# The first that is there: what was written for agents before what was written for people.
_PLACES = (
    "AGENTS.md",
    "CLAUDE.md",
    ".github/copilot-instructions.md",
    "CONTRIBUTING.md",
    "CONTRIBUTING.rst",
    "CONTRIBUTING",
    ".github/CONTRIBUTING.md",
    "docs/CONTRIBUTING.md",
)
_LIMIT = 20_000


def contributor_notes(archive: Path) -> str:
    """Return the notes in a tree's tar, cut to 20,000 bytes; empty where it has none.

    They are the repository's own words, untrusted like all of it.
    """
    found = read_member(archive, set(_PLACES), _LIMIT)
    texts = (found.get(place, b"").decode("utf-8", "replace").strip() for place in _PLACES)
    return next((text for text in texts if text), "")

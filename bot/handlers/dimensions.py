"""A person says what kind of task it is, by a label: `dimension:bug_fixing`."""

from collections.abc import Iterable

from routing.types import Dimension

_PREFIX = "dimension:"


def asked_for(labels: Iterable[str]) -> str:
    """Return the dimension that a label names, or nothing. Labels of other words after `dimension:` are not ours."""
    for label in labels:
        name = label.casefold().removeprefix(_PREFIX).strip().replace("-", "_").replace(" ", "_")
        if label.casefold().startswith(_PREFIX) and name in Dimension.__members__.values():
            return name
    return ""

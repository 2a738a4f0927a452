"""Turns a tree's `.gitignore` files into the one list of patterns that git takes from outside the tree."""

from collections.abc import Mapping

BUILD_LEAVINGS = (
    "__pycache__/",
    "*.py[cod]",
    "*.egg-info/",
    ".pytest_cache/",
    ".hypothesis/",
    ".mypy_cache/",
    ".ruff_cache/",
    ".tox/",
    ".nox/",
    ".venv/",
    ".coverage",
    ".coverage.*",
    "node_modules/",
    ".DS_Store",
    "*.orig",
    "*.rej",
)
"""What builds, test runs and failed patches leave behind."""


def combine(gitignores: Mapping[str, str]) -> str:
    """Return one exclude file that acts as the `gitignores` (path of the file -> its text) do, each in its folder.

    gitignore(5): a pattern with a slash before its end is anchored to its file's folder, any other matches below it;
    files deeper in the tree win, so they come later.
    """
    lines = list(BUILD_LEAVINGS)
    for path in sorted(gitignores, key=lambda path: (path.count("/"), path)):
        folder = path.rpartition("/")[0]
        lines += [pattern for line in gitignores[path].splitlines() if (pattern := _anchored(line, folder))]
    return "\n".join(lines) + "\n"


def _anchored(line: str, folder: str) -> str:
    pattern = line.rstrip("\r\n")
    if not pattern.strip() or pattern.startswith("#"):
        return ""
    if not folder:
        return pattern
    negated = pattern.startswith("!")
    pattern = pattern.removeprefix("!")
    at = "/" + "".join("\\" + c if c in "*?[\\" else c for c in folder)
    bare = pattern.rstrip()
    anchored = "/" in bare.removesuffix("/")
    combined = f"{at}/{pattern.lstrip('/')}" if anchored else f"{at}/**/{pattern}"
    return ("!" if negated else "") + combined

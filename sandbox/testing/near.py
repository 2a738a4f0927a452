"""Which Python tests are near a change: by name, and by who imports whom. For suites that are too large to run whole.

Files are read as text and never parsed: the tree is a stranger's.
"""

import re
import tarfile
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path, PurePosixPath

_TEST = re.compile(r"test_[^/]*\.py|[^/]*_test\.py")  # what pytest collects unless it is told otherwise
# Every repetition is bounded where two could share a text: what is read may be made to stall it.
_IMPORT = re.compile(
    r"^[ \t]{0,100}(?:from[ \t]{1,20}(?P<base>[\w.]{0,300})[ \t]{1,20}import[ \t]{0,20}"
    r"(?:\((?P<many>[^)]{0,5000})\)|(?P<names>[^#;\n]*))|import[ \t]{1,20}(?P<modules>[^#;\n]+))",
    re.MULTILINE,
)
_ROOTS = frozenset({"src", "lib", "python"})
_MAX_FILE, _MAX_FILES, _MAX_TOTAL = 300_000, 20_000, 200_000_000


def nearest(archive: Path, changed: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the test files of the tree in a tar: those near the `changed` files, the nearest first, and the others.

    Near are changed tests, tests named after a changed file, and tests that import one, over other files or directly.
    """
    sources = _sources(archive)
    importers = _importers(sources)
    distance = dict.fromkeys((path for path in changed if path in sources), 0)
    stems = {PurePosixPath(path).stem for path in changed}
    for path in sources:
        name = PurePosixPath(path).name
        if _TEST.fullmatch(name) and name.removesuffix(".py").removeprefix("test_").removesuffix("_test") in stems:
            distance.setdefault(path, 1)
    waiting = deque(sorted(distance, key=lambda path: distance[path]))
    while waiting:
        path = waiting.popleft()
        for importer in importers.get(path, ()):
            if distance.get(importer, len(sources)) > distance[path] + 1:
                distance[importer] = distance[path] + 1
                waiting.append(importer)
    tests = [path for path in sources if _TEST.fullmatch(PurePosixPath(path).name)]
    near = sorted((path for path in tests if path in distance), key=lambda path: (distance[path], path))
    return near, sorted(path for path in tests if path not in distance)


def _sources(archive: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    left = _MAX_TOTAL
    with tarfile.open(archive, "r:") as tar:
        for member in tar:
            name = member.name.removeprefix("./")
            if not (name.endswith(".py") and member.isfile() and member.size <= min(_MAX_FILE, left)):
                continue
            stream = tar.extractfile(member)
            found[name] = stream.read().decode("utf-8", "replace") if stream else ""
            left -= member.size
            if len(found) == _MAX_FILES:
                break
    return found


def _importers(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """Return which files import a file."""
    by_name: dict[str, list[str]] = {}
    for path in sources:
        for name in _module_names(path, sources):
            by_name.setdefault(name, []).append(path)
    importers: dict[str, set[str]] = {}
    for path, text in sources.items():
        for name in _imported(path, text):
            for target in by_name.get(name, ()):
                if target != path:
                    importers.setdefault(target, set()).add(path)
    return importers


def _module_names(path: str, sources: Collection[str]) -> list[str]:
    """Return the dotted names under which a file may be imported: from the root, and from folders without a package."""
    parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
    names = [".".join(parts)]
    while len(parts) > 1 and (parts[0] in _ROOTS or f"{parts[0]}/__init__.py" not in sources):
        parts = parts[1:]
        names.append(".".join(parts))
    return names


def _imported(path: str, text: str) -> set[str]:
    folders = path.split("/")[:-1]
    found = set()
    for match in _IMPORT.finditer(text):
        if match["modules"] is not None:
            bases = [part.split(" as ")[0].strip() for part in match["modules"].split(",")]
            found.update(bases)
            continue
        base = match["base"]
        dots = len(base) - len(base.lstrip("."))
        if dots:
            package = folders[: len(folders) - dots + 1]
            base = ".".join([*package, *filter(None, [base[dots:]])])
        found.add(base)
        names = match["names"] if match["many"] is None else match["many"]
        found.update(f"{base}.{part.split(' as ')[0].strip()}" for part in names.split(","))
    return found

"""The catalogue's bugs as repositories, checked out and tested on this machine, and the scripted models' endpoint.

The releases are downloaded once into `.cache/` and are what PyPI serves under a hash that the catalogue pins.
"""

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from bot.demo.bugs import Addition, Bug, find_bug, load_catalogue
from bot.demo.materialise import BugRepository, materialise
from bot.demo.scripted import ScriptedEndpoint

DOWNLOADS = Path(__file__).resolve().parents[2] / ".cache" / "sdists"
SCRIPTED_KEY = "scripted-test-key"

JUDGED = (
    "boltons-singularize-double-s",
    "cachetools-shallow-copy",
    "sqlparse-begin-transaction",
    "sqlparse-optimizer-hints",
    "tomlkit-out-of-order-tables",
    "xmltodict-none-attribute",
)
"""Six bugs of five projects whose patches the verifier judges in real containers, by the projects' own tests."""

MakeBug = Callable[[str], BugRepository]


@pytest.fixture(scope="session")
def make_bug(tmp_path_factory: pytest.TempPathFactory) -> MakeBug:
    """Return a function that gives the repository of a bug by its name. Do not write to the repository: clone it."""
    folder = tmp_path_factory.mktemp("bugs")
    return lambda name: materialise(find_bug(name), folder, downloads=DOWNLOADS)


@pytest.fixture(scope="session")
def all_bugs(make_bug: MakeBug) -> tuple[BugRepository, ...]:
    """The repositories of the whole catalogue."""
    return tuple(make_bug(bug.name) for bug in load_catalogue())


@pytest.fixture
def scripted_endpoint(all_bugs: tuple[BugRepository, ...]) -> Iterator[ScriptedEndpoint]:
    """The scripted models, listening; their key is SCRIPTED_KEY."""
    with ScriptedEndpoint(all_bugs, api_key=SCRIPTED_KEY) as endpoint:
        yield endpoint


def check_out(repository: BugRepository, folder: Path, *patches: str) -> Path:
    """Check the buggy version out into a new `folder` and apply `patches`."""
    subprocess.run(["git", "clone", "--quiet", str(repository.git_dir), str(folder)], check=True)
    for patch in patches:
        subprocess.run(["git", "apply", "-"], cwd=folder, input=patch, text=True, check=True)
    return folder


def add(folder: Path, addition: Addition) -> None:
    """Add text to the end of a file of the checkout."""
    path = folder / addition.path
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(addition.text)


def put_hidden_tests(repository: BugRepository, folder: Path) -> None:
    """Replace the checkout's test files by the next version's."""
    for path, content in repository.hidden_tests.items():
        (folder / path).write_bytes(content)


def run_tests(folder: Path, *nodes: str) -> dict[str, str]:
    """Run pytest in a checkout and return each test's status by its name: passed, failed or skipped.

    Names are those of the junit file: module, class and test, joined by dots.
    """
    report = folder / ".results.xml"
    # In the machine's own folder for temporary files this pytest would remove, before it ends, what earlier runs of
    # the whole suite have left there: for minutes.
    temporary = folder.with_name(f"{folder.name}-tmp")
    temporary.mkdir(exist_ok=True)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PYTHONPATH": f"{folder / 'src'}:{folder}",
        "TMPDIR": str(temporary),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    done = subprocess.run(
        [*command, f"--junitxml={report}", *nodes],
        cwd=folder,
        env=environment | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    if not report.exists():
        raise AssertionError(f"pytest made no report:\n{done.stdout}\n{done.stderr}")
    results = {}
    for case in ET.parse(report).iter("testcase"):  # noqa: S314  (our own pytest wrote it)
        kinds = {child.tag for child in case}
        status = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        results[f"{case.get('classname')}.{case.get('name')}"] = status
    report.unlink()
    return results


def failed(results: dict[str, str]) -> set[str]:
    return {name for name, status in results.items() if status == "failed"}


def names(nodes: Iterable[str]) -> set[str]:
    """Return pytest node ids as the junit file names them."""
    return {node.replace(".py::", ".").replace("::", ".").replace("/", ".") for node in nodes}


def bug_ids() -> list[str]:
    return [bug.name for bug in load_catalogue()]


__all__ = [
    "DOWNLOADS",
    "JUDGED",
    "SCRIPTED_KEY",
    "Bug",
    "MakeBug",
    "add",
    "all_bugs",
    "bug_ids",
    "check_out",
    "failed",
    "make_bug",
    "names",
    "put_hidden_tests",
    "run_tests",
    "scripted_endpoint",
]

"""How a Python project is set up: by its lock file, its metadata, its requirements, or what tox and nox install."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sandbox.config_files import read_ini, read_toml
from sandbox.guest_sandbox import VENV
from sandbox.setup_test_needs import Needs, needs_of_tests
from sandbox.setup_tree import Found, Tree, tried

PIP = "python -m pip install --no-input"
METADATA = ("pyproject.toml", "setup.py", "setup.cfg", "PKG-INFO", "tox.ini", "noxfile.py")
LOCKS = ("uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "constraints.txt")
_TEST_GROUPS = ("test", "tests", "testing", "dev", "develop", "development")
_TEST_REQUIREMENTS = (
    "requirements-test.txt",
    "requirements-tests.txt",
    "requirements-testing.txt",
    "requirements-dev.txt",
    "requirements_test.txt",
    "requirements_dev.txt",
    "test-requirements.txt",
    "dev-requirements.txt",
    "requirements/test.txt",
    "requirements/tests.txt",
    "requirements/testing.txt",
    "requirements/dev.txt",
)
REQUIREMENTS = ("requirements.txt", "requirements/base.txt", *_TEST_REQUIREMENTS)
# Trees come without .git: version plug-ins that ask git are told a version instead.
_VERSION = "SETUPTOOLS_SCM_PRETEND_VERSION=0.0.1 PBR_VERSION=0.0.1"
_TOOLS = "/tmp/acrouter-tools"  # noqa: S108  (inside the sandbox; not part of what is kept)
_UV = " ".join(
    (
        f"UV_PROJECT_ENVIRONMENT={VENV} UV_PYTHON={VENV}/bin/python UV_PYTHON_DOWNLOADS=never UV_NO_CACHE=1",
        'UV_LINK_MODE=copy UV_DEFAULT_INDEX="${PIP_INDEX_URL:-https://pypi.org/simple}"',
        f"{_TOOLS}/bin/uv sync --frozen --inexact",
    )
)
_POETRY = f"POETRY_DYNAMIC_VERSIONING_BYPASS=0.0.1 POETRY_CACHE_DIR={_TOOLS}/cache {_TOOLS}/bin/poetry install -n"


def python(tree: Tree) -> Found | None:
    """Return how to set a Python project up, or None where there is none."""
    project = _project(tree.files)
    requirements = [name for name in REQUIREMENTS if name in tree.files]
    commands = []
    sources = []
    enough = False
    if project is not None:
        extras, groups, source = project
        target = f".[{','.join(extras)}]" if extras else "."
        # Editable: the environment points at the workspace, so that a later tree is what gets tested.
        version = "" if "PKG-INFO" in tree.files else f"{_VERSION} "
        flags = "".join(f" --group {group}" for group in groups)
        plain = f"{version}{PIP} --use-pep517 -e '{target}'{flags}"
        locked = _locked(tree, extras, groups)
        # A lock may name an index that cannot be reached from here.
        without = f"( echo '{locked[1]} cannot be installed here; without it:'; {plain} )" if locked else ""
        commands.append(f"( {locked[0]} ) || {without}" if locked else plain)
        sources.append(locked[1] if locked else source)
        # An application's requirements.txt often pins what its metadata already names; only tests' files are extra.
        requirements = [name for name in requirements if name in _TEST_REQUIREMENTS]
        enough = bool(extras or groups or locked)
        if enough:
            requirements = []
    if requirements:
        commands.append(f"{PIP} " + " ".join(f"-r {name}" for name in requirements))
        sources.extend(requirements)
        enough = enough or any(name in _TEST_REQUIREMENTS for name in requirements)
    if not enough and (needs := needs_of_tests(tree)) is not None:
        commands.append(_installing(needs, project is not None))
        sources.append(needs.source)
    return Found(commands, ", ".join(sources)) if commands else None


def _locked(tree: Tree, extras: Sequence[str], groups: Sequence[str]) -> tuple[str, str] | None:
    """Return how the tool of a lock file installs exactly what it says, and the file's name."""
    data = _pyproject(tree.files) or {}
    if "uv.lock" in tree.names and ("project" in data or "workspace" in _table(_table(data, "tool"), "uv")):
        options = "".join(f" --extra {name}" for name in extras) + "".join(f" --group {name}" for name in groups)
        return _with_tool("uv>=0.5,<1", f"{_UV}{options}"), "uv.lock"
    poetry = _table(_table(data, "tool"), "poetry")
    if "poetry.lock" in tree.names and poetry:
        groups = _named_for_tests(_table(poetry, "group"))
        extras = extras or _named_for_tests(_table(poetry, "extras"))
        options = "".join(f" --extras {name}" for name in extras) + "".join(f" --with {name}" for name in groups)
        return _with_tool("poetry>=2,<3", f"{_POETRY}{options}"), "poetry.lock"
    return None


def _with_tool(requirement: str, command: str) -> str:
    tool = f"python3 -m venv {_TOOLS} && {_TOOLS}/bin/python -m pip install --no-input -q '{requirement}'"
    return f"{tool} && export {_VERSION} && {command}"


def _installing(needs: Needs, is_package: bool) -> str:
    arguments = [f"-r {name}" for name in needs.files] + [f"'{requirement}'" for requirement in needs.requirements]
    if needs.extras and is_package:
        arguments.append(f"-e '.[{','.join(needs.extras)}]'")
    return tried(f"{PIP} " + " ".join(arguments), f"what {needs.source} names")


def _project(files: Mapping[str, str]) -> tuple[list[str], list[str], str] | None:
    """Return test extras, test dependency groups and the source's name, or None where nothing is installable."""
    if "pyproject.toml" in files:
        data = _pyproject(files)
        if data is None:
            return None  # broken: pip would fail on it as well, and its tests may still run
        groups = _named_for_tests(_table(data, "dependency-groups"))
        if "build-system" in data or "project" in data:
            extras = _named_for_tests(_table(_table(data, "project"), "optional-dependencies"))
            return extras or _setup_cfg_extras(files), groups, "pyproject.toml"
    if "setup.py" in files:
        return _setup_py_extras(files["setup.py"]) or _setup_cfg_extras(files), [], "setup.py"
    return None


def _pyproject(files: Mapping[str, str]) -> Mapping[str, Any] | None:
    return read_toml(files.get("pyproject.toml", ""))


def _table(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = data.get(key)
    return value if isinstance(value, dict) else {}


def _named_for_tests(names: Mapping[str, Any]) -> list[str]:
    """Return the first name that stands for tests; one is enough, and `dev` often pulls in linters and docs too."""
    for wanted in _TEST_GROUPS:
        for name in names:
            if str(name).lower() == wanted:
                return [str(name)]
    return []


def _setup_cfg_extras(files: Mapping[str, str]) -> list[str]:
    parser = read_ini(files.get("setup.cfg", ""))
    section = "options.extras_require"
    if parser is None or not parser.has_section(section):
        return []
    return _named_for_tests(dict(parser.items(section)))


def _setup_py_extras(source: str) -> list[str]:
    """Look for test extras in setup.py without running it."""
    # Bounded, since what is read may be made to stall it.
    pattern = r"extras_require\s{0,20}=\s{0,20}(?:dict\(|\{)(.{0,3000}?)(?:\}|\)\s{0,20},)"
    match = re.search(pattern, source[:100_000], re.DOTALL)
    if match is None:
        return []
    keys = re.findall(r"""["']?([A-Za-z][\w-]*)["']?\s*[:=]\s*[\[(]""", match.group(1))
    return _named_for_tests(dict.fromkeys(keys))

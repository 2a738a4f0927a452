"""Finds out how to install what a repository needs, from its files alone; nothing of it is run here."""

import configparser
import hashlib
import re
import tarfile
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from sandbox.archives import read_member
from sandbox.errors import CheckoutError
from sandbox.guest_sandbox import VENV
from sandbox.types import SetupPlan

_PIP = "python -m pip install --no-input"
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
_REQUIREMENTS = ("requirements.txt", "requirements/base.txt", *_TEST_REQUIREMENTS)
_METADATA = ("pyproject.toml", "setup.py", "setup.cfg", "PKG-INFO")
_LOCKS = ("uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "constraints.txt")
_MODULES = f"{VENV}/node_modules"
_NODE_LOCKS = (
    ("pnpm-lock.yaml", "pnpm", "pnpm install --frozen-lockfile"),
    ("yarn.lock", "yarn", "yarn install --frozen-lockfile"),
    ("package-lock.json", "npm", "npm ci --no-audit --no-fund"),
    ("npm-shrinkwrap.json", "npm", "npm ci --no-audit --no-fund"),
)
"""Lock file, program, and how it installs exactly what the file says."""
_BUILD_FILES = (
    "package.json",
    "go.mod",
    "go.sum",
    "Cargo.toml",
    "Cargo.lock",
    "pom.xml",
    *(n for n, _, _ in _NODE_LOCKS),
)
# Trees come without .git: version plug-ins that ask git are told a version instead.
_VERSION = "SETUPTOOLS_SCM_PRETEND_VERSION=0.0.1 PBR_VERSION=0.0.1"

Files = Mapping[str, str]


def detect(archive: Path, *, commands: Sequence[str] | None, base: str) -> SetupPlan:
    """Return how to set up the tree in `archive`; `commands` from the configuration win (an empty list: nothing).

    `base` identifies the base image. A repository that needs nothing gets a plan without commands.

    Raises:
        CheckoutError: the archive cannot be read.
    """
    try:
        raw = read_member(archive, {*_METADATA, *_REQUIREMENTS, *_LOCKS, *_BUILD_FILES})
        layout = _layout(archive)
    except tarfile.TarError as error:
        raise CheckoutError(f"{archive.name} is not an uncompressed tar archive: {error}") from error
    files = {name: content.decode("utf-8", "replace") for name, content in raw.items()}
    if commands is not None:
        found, source = list(commands), ".acrouter.yml"
    else:
        found, source = [], "nothing to install"
        for detector in DETECTORS:
            if answer := detector(files):
                found, source = answer
                break
    return SetupPlan(tuple(found), _cache_key(found, raw, layout, base), source)


def _python(files: Files) -> tuple[list[str], str] | None:
    project = _project(files)
    requirements = [name for name in _REQUIREMENTS if name in files]
    commands = []
    sources = []
    if project is not None:
        extras, groups, source = project
        target = f".[{','.join(extras)}]" if extras else "."
        # Editable: the environment points at the workspace, so that a later tree is what gets tested.
        version = "" if "PKG-INFO" in files else f"{_VERSION} "
        flags = "".join(f" --group {group}" for group in groups)
        commands.append(f"{version}{_PIP} --use-pep517 -e '{target}'{flags}")
        sources.append(source)
        # An application's requirements.txt often pins what its metadata already names; only tests' files are extra.
        requirements = [name for name in requirements if name in _TEST_REQUIREMENTS]
        if extras or groups:
            requirements = []
    if requirements:
        commands.append(f"{_PIP} " + " ".join(f"-r {name}" for name in requirements))
        sources.extend(requirements)
    return (commands, ", ".join(sources)) if commands else None


def _npm(files: Files) -> tuple[list[str], str] | None:
    if "package.json" not in files:
        return None
    lock, program, install = next(
        (found for found in _NODE_LOCKS if found[0] in files),
        ("package.json", "npm", "npm install --no-audit --no-fund --no-package-lock"),
    )
    # The tree comes without them: they stay beside the environment, and each fresh tree gets a link to them.
    keep = f"rm -rf {_MODULES} && mv node_modules {_MODULES} && ln -s {_MODULES} node_modules"
    return [_where_there_is(program, f"{install} && if [ -d node_modules ]; then {keep}; fi")], lock


def _go(files: Files) -> tuple[list[str], str] | None:
    return ([_where_there_is("go", "go mod download")], "go.mod") if "go.mod" in files else None


def _cargo(files: Files) -> tuple[list[str], str] | None:
    return ([_where_there_is("cargo", "cargo fetch")], "Cargo.toml") if "Cargo.toml" in files else None


def _maven(files: Files) -> tuple[list[str], str] | None:
    command = f"mvn -B -q -Dmaven.repo.local={VENV}/m2 -DskipTests test-compile dependency:go-offline"
    return ([_where_there_is("mvn", command)], "pom.xml") if "pom.xml" in files else None


def _where_there_is(program: str, command: str) -> str:
    """Without the program nothing can be set up, and the verification says what is missing."""
    return f"if command -v {program} > /dev/null; then {command}; else echo '{program} is not in the image'; fi"


DETECTORS: Sequence[Callable[[Files], tuple[list[str], str] | None]] = (_python, _npm, _go, _cargo, _maven)
"""Each looks at the files of the root and answers with commands and their source, or None. The first answer wins.

Another language is another function here, and its file names in the set that `detect` reads."""


def _project(files: Files) -> tuple[list[str], list[str], str] | None:
    """Return test extras, test dependency groups and the source's name, or None where nothing is installable."""
    if "pyproject.toml" in files:
        try:
            data: dict[str, Any] = tomllib.loads(files["pyproject.toml"])
        except tomllib.TOMLDecodeError:
            return None  # broken: pip would fail on it as well, and its tests may still run
        groups = _named_for_tests(_table(data, "dependency-groups"))
        if "build-system" in data or "project" in data:
            extras = _named_for_tests(_table(_table(data, "project"), "optional-dependencies"))
            return extras or _setup_cfg_extras(files), groups, "pyproject.toml"
    if "setup.py" in files:
        return _setup_py_extras(files["setup.py"]) or _setup_cfg_extras(files), [], "setup.py"
    return None


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


def _setup_cfg_extras(files: Files) -> list[str]:
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(files.get("setup.cfg", ""))
    except configparser.Error:
        return []
    section = "options.extras_require"
    return _named_for_tests(dict(parser.items(section))) if parser.has_section(section) else []


def _setup_py_extras(source: str) -> list[str]:
    """Look for test extras in setup.py without running it."""
    match = re.search(r"extras_require\s*=\s*(?:dict\(|\{)(.*?)(?:\}|\)\s*,)", source, re.DOTALL)
    if match is None:
        return []
    keys = re.findall(r"""["']?([A-Za-z][\w-]*)["']?\s*[:=]\s*[\[(]""", match.group(1))
    return _named_for_tests(dict.fromkeys(keys))


def _layout(archive: Path) -> list[str]:
    """Return the names at the root and below src/: an editable install's import map depends on them."""
    with tarfile.open(archive, "r:") as tar:
        paths = [PurePosixPath(name).parts for name in tar.getnames()]
    return sorted({"/".join(parts[: 2 if parts[0] == "src" else 1]) for parts in paths if parts})


def _cache_key(commands: Sequence[str], raw: Mapping[str, bytes], layout: Sequence[str], base: str) -> str:
    digest = hashlib.sha256()
    parts = [b"3", base.encode(), *(command.encode() for command in commands), b"", *(n.encode() for n in layout), b""]
    for name in sorted(raw):
        parts += [name.encode(), raw[name]]
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:32]

"""How a repository's set-up is found out from its files."""

import os
from pathlib import Path

import pytest

from sandbox.errors import CheckoutError
from sandbox.setup_plan import detect
from sandbox.setup_sharing import of_default_branch, of_tree
from tests.support.repositories import make_archive

PYPROJECT = '[build-system]\nrequires = ["hatchling"]\n[project]\nname = "x"\nversion = "1"\n'


def commands(tmp_path: Path, files: dict[str, str]) -> list[str]:
    return list(
        detect(make_archive(tmp_path / "tree.tar", files), commands=None, base="b", shared_with="tests").commands
    )


def test_a_repository_with_nothing_needs_nothing(tmp_path: Path) -> None:
    plan = detect(
        make_archive(tmp_path / "tree.tar", {"x.py": "", "README.md": ""}), commands=None, base="b", shared_with="tests"
    )
    assert (plan.commands, plan.source) == ((), "nothing to install")


def test_the_configuration_wins_even_with_nothing(tmp_path: Path) -> None:
    archive = make_archive(tmp_path / "tree.tar", {"pyproject.toml": PYPROJECT})
    assert detect(archive, commands=["make deps"], base="b", shared_with="tests").commands == ("make deps",)
    assert detect(archive, commands=[], base="b", shared_with="tests").commands == ()


@pytest.mark.parametrize(
    ("files", "target"),
    [
        ({"pyproject.toml": PYPROJECT}, "-e '.'"),
        ({"pyproject.toml": PYPROJECT + '[project.optional-dependencies]\ndocs = []\ntests = ["pytest"]\n'},
         "-e '.[tests]'"),
        ({"pyproject.toml": PYPROJECT + '[dependency-groups]\ndev = ["pytest"]\n'}, "-e '.' --group dev"),
        ({"setup.py": "setup(extras_require={'docs': ['sphinx'], 'test': ['pytest']})"}, "-e '.[test]'"),
        ({"setup.py": "setup()", "setup.cfg": "[options.extras_require]\ntesting =\n  pytest\n"}, "-e '.[testing]'"),
    ],
    ids=["plain", "extra", "group", "setup.py", "setup.cfg"],
)  # fmt: skip
def test_a_package_is_installed_editable_with_what_its_tests_need(
    tmp_path: Path, files: dict[str, str], target: str
) -> None:
    (command,) = commands(tmp_path, files)
    assert command.endswith(f"--use-pep517 {target}")


def test_requirements_of_tests_join_the_package(tmp_path: Path) -> None:
    files = {"pyproject.toml": PYPROJECT, "requirements.txt": "a", "requirements-dev.txt": "b"}
    first, second = commands(tmp_path, files)
    assert "-e '.'" in first
    assert second.endswith("-r requirements-dev.txt")


def test_requirements_alone_are_installed(tmp_path: Path) -> None:
    (command,) = commands(
        tmp_path, {"requirements.txt": "a", "requirements/test.txt": "b", "pyproject.toml": "[tool.x]"}
    )
    assert command.endswith("-r requirements.txt -r requirements/test.txt")


@pytest.mark.parametrize(
    "text",
    [
        "[project",
        "project = 1",
        'dependency-groups = "x"',
        "[project]\noptional-dependencies = 1",
        "a = " + "[" * 50_000,
    ],
)
def test_strange_metadata_is_no_crash(tmp_path: Path, text: str) -> None:
    commands(tmp_path, {"pyproject.toml": text, "setup.cfg": "no section"})


def test_an_extras_name_cannot_reach_the_shell(tmp_path: Path) -> None:
    hostile = (
        PYPROJECT + "[project.optional-dependencies]\n\"test'; touch /x; '\" = []\n[dependency-groups]\n'dev; id' = []"
    )
    (command,) = commands(tmp_path, {"pyproject.toml": hostile})
    assert "touch" not in command
    assert "id" not in command.split("pip install")[1].replace("--no-input", "")


def test_the_key_follows_what_the_result_depends_on(tmp_path: Path) -> None:
    def key(name: str, files: dict[str, str], given: list[str] | None = None, base: str = "b") -> str:
        return detect(
            make_archive(tmp_path / f"{name}.tar", files), commands=given, base=base, shared_with="tests"
        ).cache_key

    first = key("1", {"pyproject.toml": PYPROJECT, "x/a.py": "1"})
    assert key("2", {"pyproject.toml": PYPROJECT, "x/a.py": "changed"}) == first
    others = {
        key("3", {"pyproject.toml": PYPROJECT + "\n", "x/a.py": "1"}),
        key("4", {"pyproject.toml": PYPROJECT, "x/a.py": "1", "uv.lock": ""}),
        key("5", {"pyproject.toml": PYPROJECT, "y/a.py": "1"}),
        key("6", {"pyproject.toml": PYPROJECT, "x/a.py": "1"}, ["make"]),
        key("7", {"pyproject.toml": PYPROJECT, "x/a.py": "1"}, base="other"),
    }
    assert len(others | {first}) == 6


def test_names_that_are_not_utf8_are_keyed_as_any_other(tmp_path: Path) -> None:
    def key(number: int, *names: bytes) -> str:
        files = {os.fsdecode(name): "" for name in names}
        return detect(
            make_archive(tmp_path / f"{number}.tar", files), commands=None, base="b", shared_with="tests"
        ).cache_key

    assert key(1, b"caf\xe9.txt", b"d\xff/pom.xml") != key(2, b"caf\xe8.txt", b"d\xff/pom.xml")


@pytest.mark.parametrize(
    ("files", "commands"),
    [
        ({"setup.py": "", "shop/version.py": ""}, None),
        ({"package.json": "{}", "scripts/postinstall.js": ""}, None),
        ({"requirements.txt": "-r more/base.txt", "more/base.txt": ""}, None),
        ({"pyproject.toml": PYPROJECT, "tools/backend.py": ""}, None),
        ({"Makefile": ""}, ["make deps"]),
    ],
    ids=["setup.py", "npm", "included requirements", "build backend", "make"],
)
def test_what_a_set_up_runs_is_in_no_key_so_the_key_says_whose_code_it_is_for(
    tmp_path: Path, files: dict[str, str], commands: list[str] | None
) -> None:
    archive = make_archive(tmp_path / "tree.tar", files)
    circles = (
        of_default_branch("github.com 1"),
        of_default_branch("github.com 11"),
        of_default_branch("github.example 1"),
        of_tree("github.com 1", "a" * 40),
        of_tree("github.com 1", "b" * 40),
        of_tree("github.com 11", "a" * 40),
    )
    keys = [detect(archive, commands=commands, base="b", shared_with=circle).cache_key for circle in circles]
    assert len(set(keys)) == len(circles)
    assert detect(archive, commands=commands, base="b", shared_with=circles[0]).cache_key == keys[0]


def test_a_file_that_is_no_archive_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.tar").write_bytes(b"nothing")
    with pytest.raises(CheckoutError, match=r"x\.tar"):
        detect(tmp_path / "x.tar", commands=None, base="b", shared_with="tests")


POETRY = (
    '[build-system]\nrequires = ["poetry-core"]\n[tool.poetry]\nname = "x"\n[tool.poetry.group.test]\noptional = true\n'
)


@pytest.mark.parametrize(
    ("files", "tool", "said"),
    [
        ({"pyproject.toml": PYPROJECT + '[dependency-groups]\ntest = ["pytest"]\n', "uv.lock": ""}, "'uv>=",
         "uv sync --frozen --inexact --group test"),
        ({"pyproject.toml": POETRY, "poetry.lock": ""}, "'poetry>=", "poetry install -n --with test"),
    ],
    ids=["uv", "poetry"],
)  # fmt: skip
def test_a_lock_file_is_installed_by_its_own_tool_and_else_without_it(
    tmp_path: Path, files: dict[str, str], tool: str, said: str
) -> None:
    (command,) = commands(tmp_path, files | {"requirements-dev.txt": "not needed"})
    exact, plain = command.split(" || ")
    assert tool in exact
    assert exact.endswith(f"{said} )")
    assert "--use-pep517 -e '.'" in plain


TOX_INI = """
[testenv]
deps =
  pytest>=8  # the runner
  py39: old
  -rtests/more.txt
  -r gone.txt
  {env:DEPENDENCY}
  x'; touch y
"""
NOXFILE = """
@nox.session
def lint(s):
    s.install("ruff")

@nox.session(python="3")
def tests(session):
    session.install("pytest", "-r", "r.txt", name)
    session.install("-e", ".[test]")
"""


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"tox.ini": TOX_INI, "tests/more.txt": ""}, "-r tests/more.txt 'pytest>=8'"),
        ({"tox.ini": "[testenv]\nextras = test,\n  slow\n", "pyproject.toml": PYPROJECT}, "-e '.[test,slow]'"),
        ({"pyproject.toml": PYPROJECT + '[tool.tox.env_run_base]\ndeps = ["mock"]\n'}, "'mock'"),
        ({"pyproject.toml": PYPROJECT + "[tool.tox]\nlegacy_tox_ini = '''[testenv]\ndeps = mock'''\n"}, "'mock'"),
        ({"noxfile.py": NOXFILE, "r.txt": "", "setup.py": "setup()"}, "-r r.txt 'pytest' -e '.[test]'"),
    ],
    ids=["tox.ini", "tox extras", "tox toml", "tox in toml", "nox"],
)
def test_what_tox_and_nox_install_for_tests_is_tried(tmp_path: Path, files: dict[str, str], said: str) -> None:
    command = commands(tmp_path, files)[-1]
    assert command.startswith(f"( python -m pip install --no-input {said} ) || echo ")


def test_tox_is_not_asked_where_the_project_says_it_itself(tmp_path: Path) -> None:
    files = {"pyproject.toml": PYPROJECT, "requirements-dev.txt": "a", "tox.ini": "[testenv]\ndeps = b"}
    assert len(commands(tmp_path, files)) == 2


@pytest.mark.parametrize("text", ["[testenv", "deps = x", "[testenv]\ndeps = --index-url=http://x\n"])
def test_a_strange_tox_ini_needs_nothing(tmp_path: Path, text: str) -> None:
    assert commands(tmp_path, {"tox.ini": text, "noxfile.py": "def tests(:"}) == []


DEVCONTAINER = """{
    // A comment, and "https://" in a text below.
    "image": "mcr.microsoft.com/devcontainers/python:3.12", /* another */
    "postCreateCommand": "echo https://x // y",
    "onCreateCommand": ["make", "deps for tests"],
    "updateContentCommand": {"a": "one", "b": ["two"]},
}"""


def test_a_devcontainers_commands_are_tried_where_nothing_else_is_found(tmp_path: Path) -> None:
    found = commands(tmp_path, {".devcontainer/devcontainer.json": DEVCONTAINER, "Makefile": ""})
    assert [command.split(" ) || ")[0] for command in found] == [
        "( make 'deps for tests'",
        "( one",
        "( two",
        "( echo https://x // y",
    ]
    assert "pip" in commands(tmp_path / "2", {".devcontainer.json": DEVCONTAINER, "pyproject.toml": PYPROJECT})[0]


def test_images_of_the_repositorys_own_containers_are_told_and_not_used(tmp_path: Path) -> None:
    dockerfile = "FROM --platform=linux/amd64 golang:1 AS build\nFROM build\nfrom debian:12\nFROM $BASE\nFROM scratch\n"
    files = {".devcontainer/devcontainer.json": DEVCONTAINER, "Dockerfile": dockerfile}
    plan = detect(make_archive(tmp_path / "tree.tar", files), commands=[], base="b", shared_with="tests")
    assert plan.named_images == [
        (".devcontainer/devcontainer.json", "mcr.microsoft.com/devcontainers/python:3.12"),
        ("Dockerfile", "golang:1"),
        ("Dockerfile", "debian:12"),
    ]
    assert plan.commands == ()


@pytest.mark.parametrize(
    "text",
    [
        *("[]", "{", '{"postCreateCommand": 1, "image": []}', "[" * 50_000),
        *('{"postCreateCommand": "\\ud800"}', '{"postCreateCommand": ["a", "\\u0000"], "image": "\\udfff"}'),
    ],
)
def test_a_strange_devcontainer_needs_nothing(tmp_path: Path, text: str) -> None:
    assert commands(tmp_path, {".devcontainer.json": text}) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (".devcontainer.json", '"' + '\\"' * 400_000),
        (".devcontainer.json", '"' + '\\"' * 400_000 + "\\"),
        (".devcontainer.json", "/* " * 300_000),
        (".devcontainer.json", ", \n" * 300_000),
        ("Dockerfile", "\n" * 900_000),
        ("Dockerfile", "FROM" + " " * 900_000),
        ("setup.py", "extras_require={" * 50_000),
        ("pyproject.toml", "a." * 10_000 + "b = 1"),
        ("setup.cfg", "[s]\n" + " a\n" * 60_000),
    ],
    ids=["text", "escape", "comment", "comma", "lines", "spaces", "extras", "key", "ini"],
)
def test_hostile_files_do_not_stall_the_search(tmp_path: Path, name: str, text: str) -> None:
    plan = detect(make_archive(tmp_path / "tree.tar", {name: text}), commands=None, base="b", shared_with="tests")
    assert plan.named_images == []
    assert bool(plan.commands) is (name == "setup.py")


@pytest.mark.parametrize(
    ("lock", "text", "said"),
    [
        ("pnpm-lock.yaml", "", "npx --yes pnpm@9 install --frozen-lockfile"),
        ("yarn.lock", "# yarn lockfile v1", "npx --yes yarn@1 install --frozen-lockfile"),
        (
            "yarn.lock",
            "__metadata:\n  version: 8\n",
            "YARN_NODE_LINKER=node-modules npx --yes @yarnpkg/cli-dist@4 install --immutable",
        ),
    ],
)
def test_npm_fetches_pnpm_and_yarn_where_only_npm_is_there(tmp_path: Path, lock: str, text: str, said: str) -> None:
    (command,) = commands(tmp_path, {"package.json": "{}", lock: text})
    assert f"elif command -v npx > /dev/null; then {said}; else " in command


@pytest.mark.parametrize(
    ("files", "program", "said"),
    [
        ({"package.json": "{}", "package-lock.json": "{}"}, "npm", "npm ci"),
        ({"package.json": "{}", "yarn.lock": ""}, "yarn", "yarn install --frozen-lockfile"),
        ({"package.json": "{}", "pnpm-lock.yaml": ""}, "pnpm", "pnpm install --frozen-lockfile"),
        ({"package.json": "{}"}, "npm", "npm install"),
        ({"go.mod": "module x"}, "go", "go mod download"),
        ({"Cargo.toml": "[package]"}, "cargo", "cargo fetch"),
        ({"pom.xml": "<project/>"}, "mvn", "-Dmaven.repo.local=/opt/venv/m2"),
        ({"build.gradle": ""}, "gradle", "\ngradle --no-daemon"),
        ({"settings.gradle.kts": "", "gradlew": ""}, "java", "\nbash ./gradlew --no-daemon"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_other_languages_are_set_up_by_their_own_tools_where_the_image_has_them(
    tmp_path: Path, files: dict[str, str], program: str, said: str
) -> None:
    (command,) = commands(tmp_path, files)
    assert command.startswith(f"if command -v {program} > /dev/null; then ")
    assert said in command


def test_a_module_that_depends_on_more_is_set_up_anew(tmp_path: Path) -> None:
    def key(name: str, files: dict[str, str]) -> str:
        return detect(
            make_archive(tmp_path / f"{name}.tar", files), commands=None, base="b", shared_with="tests"
        ).cache_key

    for build, module in (("pom.xml", "core/pom.xml"), ("settings.gradle", "core/build.gradle.kts")):
        first = key("1", {build: "", module: "", "core/src/A.java": "1"})
        assert key("2", {build: "", module: "", "core/src/A.java": "2"}) == first
        assert key("3", {build: "", module: "more", "core/src/A.java": "1"}) != first

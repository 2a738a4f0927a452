"""Verdicts on a JavaScript and on a C project, with the real tools of Debian in a container, and without them."""

import uuid
from collections.abc import Mapping
from pathlib import Path

import pytest

from sandbox.docker_backend import DockerBackend
from sandbox.results import VerificationResult
from sandbox.setup_plan import detect
from sandbox.testing import discover
from sandbox.types import Limits
from sandbox.verify import VerifyRequest, verify
from tests.support.small_project import FILES, SmallProject, small_project

pytestmark = [pytest.mark.docker, pytest.mark.timeout(600)]

LABELS = {"task": "languages", "owner": "tests"}
NO_PYTHON: Mapping[str, None] = dict.fromkeys(FILES)

JAVASCRIPT = {
    "package.json": '{"name": "sums", "scripts": {"test": "node --test"}}\n',
    "sum.js": "exports.sum = (numbers) => numbers.reduce((a, b) => a + b);\n",
    "sum.test.js": (
        "const { describe, it } = require('node:test');\nconst assert = require('node:assert');\n"
        "const { sum } = require('./sum.js');\n"
        "describe('sum', () => {\n  it('adds', () => assert.equal(sum([1, 2]), 3));\n"
        "  it('takes nothing', () => assert.equal(sum([]), 0));\n});\n"
    ),
}
C = {
    "Makefile": "test: check\n\t./check\n\ncheck: check.c sum.c sum.h\n\tgcc -Wall -o check check.c sum.c\n",
    "sum.h": "int sum(const int *numbers, int count);\n",
    "sum.c": (
        '#include "sum.h"\nint sum(const int *numbers, int count) {\n    int result = 0;\n'
        "    for (int i = 1; i < count; i++) result += numbers[i];\n    return result;\n}\n"
    ),
    "check.c": (
        '#include <assert.h>\n#include "sum.h"\n'
        "int main(void) {\n    int numbers[] = {1, 2, 3};\n    assert(sum(numbers, 3) == 6);\n    return 0;\n}\n"
    ),
}


@pytest.fixture(scope="module")
def with_tools() -> DockerBackend:
    """As an operator has it who sets ACROUTER_SANDBOX_PACKAGES; made once on a machine, like the base image."""
    packages = ["nodejs", "gcc", "libc6-dev"]
    return DockerBackend("acrouter/base:1", Limits(), instance=f"tests-{uuid.uuid4().hex}", packages=packages)


@pytest.fixture(scope="module")
def plain() -> DockerBackend:
    return DockerBackend("acrouter/base:1", Limits(), instance=f"tests-{uuid.uuid4().hex}")


def judge(
    backend: DockerBackend, project: SmallProject, root: Path, changes: Mapping[str, str | bytes | None]
) -> VerificationResult:
    archive = project.archive(root / "tree.tar")
    plan = detect(archive, commands=[], base=backend.ensure_base(), shared_with="tests")
    request = VerifyRequest(
        project.sha,
        project.patch(changes),
        backend.prepare(archive, plan, timeout_s=60, labels=LABELS),
        LABELS,
        discover(archive, None),
        test_timeout_s=60,
    )
    return verify(request, backend, project.mirror)


def test_javascript_is_judged_by_its_tests(with_tools: DockerBackend, tmp_path: Path) -> None:
    project = small_project(tmp_path, {**NO_PYTHON, **JAVASCRIPT})
    right = judge(with_tools, project, tmp_path, {"sum.js": JAVASCRIPT["sum.js"].replace("a + b)", "a + b, 0)")})
    assert right.verdict == "verified", right
    assert [test.removeprefix("sum.test.js > ") for test in right.fail_to_pass] == ["sum > takes nothing"]
    assert right.after is not None
    assert (right.after.passed, right.after.failed) == (2, 0)

    breaking = judge(with_tools, project, tmp_path, {"sum.js": "exports.sum = () => 0;\n"})
    assert breaking.verdict == "breaking"
    assert [test.removeprefix("sum.test.js > ") for test in breaking.pass_to_fail] == ["sum > adds"]

    silenced = JAVASCRIPT["sum.test.js"].replace("it('takes", "it.skip('takes")
    hidden = judge(with_tools, project, tmp_path, {"sum.test.js": silenced, "sum.js": JAVASCRIPT["sum.js"] + "// x\n"})
    assert hidden.verdict == "unverified"


def test_c_is_judged_by_what_make_says(with_tools: DockerBackend, tmp_path: Path) -> None:
    project = small_project(tmp_path, {**NO_PYTHON, **C})
    right = judge(with_tools, project, tmp_path, {"sum.c": C["sum.c"].replace("i = 1", "i = 0")})
    assert right.verdict == "verified", right
    wrong = judge(with_tools, project, tmp_path, {"sum.c": C["sum.c"].replace("i = 1", "i = 2")})
    assert wrong.verdict == "unverified"


@pytest.mark.parametrize(("files", "missing"), [(JAVASCRIPT, "node"), (C, "gcc")], ids=["JavaScript", "C"])
def test_a_language_that_the_plain_image_lacks_is_unverified_and_named(
    plain: DockerBackend, tmp_path: Path, files: Mapping[str, str], missing: str
) -> None:
    project = small_project(tmp_path, {**NO_PYTHON, **files})
    result = judge(plain, project, tmp_path, {"new.txt": "x\n"})
    assert result.verdict == "unverified"
    assert f"The sandbox has no `{missing}`" in result.summary
    assert "ACROUTER_SANDBOX_PACKAGES" in result.summary

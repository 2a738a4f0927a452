"""Suites that are too large to run whole: what is near a change, and what is said of the rest."""

import re
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from sandbox.results import TestCommand, TestReport, VerificationResult
from sandbox.testing.near import nearest
from sandbox.types import CommandResult, FileDigest, Sandbox, SandboxSpec
from sandbox.verify import VerifyRequest, verify
from tests.support.patches import change, new

FILES = {
    "src/shop/__init__.py": "from .cart import total\n",
    "src/shop/cart.py": "from shop.money import (\n    add,  # a comment\n    round as r,\n)\n",
    "src/shop/money.py": "",
    "src/shop/mail.py": "import smtplib, email\n",
    "tests/__init__.py": "",
    "tests/helpers.py": "from shop import money as m\n",
    "tests/test_money.py": "",
    "tests/test_cart.py": "from shop.cart import total\n",
    "tests/test_shop.py": "import shop as s, os\n",
    "tests/test_with_helpers.py": "def test():\n    from .helpers import x\n",
    "tests/test_mail.py": "from shop.mail import send\n",
    "docs/conf.py": "import shop.money\n",
}


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return packed(tmp_path)


def packed(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).write_text(text, encoding="utf-8")
    with tarfile.open(tmp_path / "tree.tar", "w") as tar:
        tar.add(tmp_path / "tree", arcname=".")
    return tmp_path / "tree.tar"


def test_tests_are_near_by_name_and_by_who_imports_whom(archive: Path) -> None:
    near, others = nearest(archive, ["src/shop/money.py"])
    assert near == ["tests/test_money.py", "tests/test_cart.py", "tests/test_with_helpers.py", "tests/test_shop.py"]
    assert others == ["tests/test_mail.py"]


def test_a_changed_test_is_the_nearest(archive: Path) -> None:
    assert nearest(archive, ["tests/test_mail.py", "src/shop/money.py"])[0][0] == "tests/test_mail.py"
    assert nearest(archive, ["README.md", "gone.py"]) == ([], sorted(n for n in FILES if "/test_" in n))


@pytest.mark.parametrize(
    "text",
    [
        "from " * 100_000,
        "from" + " " * 280_000,
        "from " + "." * 280_000,
        "import " + "a," * 100_000,
        "from . import (" * 20_000,
        "from . import (\n" * 17_000,
    ],
)
def test_hostile_sources_do_not_stall_the_search(tmp_path: Path, text: str) -> None:
    (tmp_path / "test_a.py").write_text(text[:290_000], encoding="utf-8")
    with tarfile.open(tmp_path / "tree.tar", "w") as tar:
        tar.add(tmp_path / "test_a.py", arcname="test_a.py")
    assert nearest(tmp_path / "tree.tar", ["a.py"])[0] == ["test_a.py"]


class LargeSuite:
    """Tests of which test_mail.py never ends. test_money.py fails without the patch, `broken` fails with it."""

    def __init__(self, archive: Path, broken: str = "") -> None:
        self._archive = archive
        self._broken = broken
        self.commands: list[str] = []

    def archive(self, treeish: str, destination: Path) -> None:
        destination.write_bytes(self._archive.read_bytes() + treeish.encode())

    def tree_with_patch(self, base_sha: str, patch: str) -> str:
        return "patched" if "b/src/" in patch else "tests only"

    def open(self, spec: SandboxSpec) -> Sandbox:
        return _Suite(self, self._broken)


class _Suite:
    def __init__(self, suite: LargeSuite, broken: str) -> None:
        self._suite = suite
        self._broken = broken
        self._patched = False
        self._files: list[str] = []

    def put_tree(self, archive: Path) -> None:
        self._patched = archive.read_bytes().endswith(b"patched")

    def execute(self, command: str, *, timeout_s: float, trusted: bool = False) -> CommandResult:
        if "pytest" not in command:
            return CommandResult("PARSED[]\n", 0, False, 0.0)
        self._suite.commands.append(command.splitlines()[-1])
        self._files = re.findall(r"\./(\S+)", command.splitlines()[-1])
        slow = not self._files or "tests/test_mail.py" in self._files
        return CommandResult("", int(any(map(self._fails, self._files))), slow, 0.1)

    def read_file(self, path: str, *, limit: int = 0) -> bytes | None:
        if not path.endswith(".xml") or not self._files or "tests/test_mail.py" in self._files:
            return None
        cases = (
            f'<testcase classname="{name.removesuffix(".py").replace("/", ".")}" name="test" file="{name}">'
            f"{'<failure/>' if self._fails(name) else ''}</testcase>"
            for name in self._files
        )
        return f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>".encode()

    def put_file(self, path: str, content: bytes) -> None: ...

    def changed(self, files: Mapping[str, FileDigest]) -> list[str]:
        return []

    def close(self) -> None: ...

    def _fails(self, name: str) -> bool:
        if self._patched:
            return name == self._broken
        return name == "tests/test_money.py"


def verified(suite: LargeSuite, patch: str, before: TestReport | None = None) -> VerificationResult:
    command = TestCommand("python3 -m pytest", "pytest", "test")
    request = VerifyRequest("base", patch, "image", {}, command, before=before, test_timeout_s=600)
    return verify(request, suite, suite)


def test_a_suite_that_does_not_end_is_judged_by_what_is_near_and_says_so(archive: Path) -> None:
    suite = LargeSuite(archive)
    result = verified(suite, change("src/shop/money.py"))
    assert result.verdict == "verified", result.summary
    assert result.fail_to_pass == ["tests/test_money.py::test"]
    assert "4 of 5 test files were run, those near the change first" in result.summary
    assert result.score < 1.0
    assert result.baseline is not None
    assert result.baseline.timed_out

    suite.commands.clear()
    again = verified(suite, change("src/shop/money.py"), before=result.baseline)
    assert again.verdict == "verified"
    assert "python3 -m pytest" not in suite.commands, "the whole suite is not tried again"


def test_without_what_the_tests_need_nothing_is_run(archive: Path) -> None:
    suite = LargeSuite(archive)
    missing = TestReport("python3 -m pytest", {}, 5, False, 0.0, "", "The service database is missing.")
    result = verified(suite, change("src/shop/money.py"), before=missing)
    assert (result.verdict, suite.commands) == ("unverified", [])
    assert "The service database is missing." in result.summary
    assert next(signal.value for signal in result.signals if signal.name == "no_regressions") is None


def test_what_breaks_near_the_change_is_broken(archive: Path) -> None:
    result = verified(LargeSuite(archive, broken="tests/test_cart.py"), change("src/shop/money.py"))
    assert result.verdict == "breaking"
    assert result.pass_to_fail == ["tests/test_cart.py::test"]


def test_a_suite_whose_near_tests_do_not_end_is_unverified(archive: Path) -> None:
    result = verified(LargeSuite(archive), change("src/shop/mail.py"))
    assert result.verdict == "unverified"
    assert "could not be run to their end" in result.summary


def test_a_new_test_counts_though_it_has_no_run_before(archive: Path) -> None:
    patch = change("src/shop/money.py") + new("tests/test_new.py", ["def test():", "    assert 1"])
    result = verified(LargeSuite(archive), patch)
    assert result.verdict == "verified", result.summary

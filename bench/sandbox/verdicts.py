"""How often the verdict agrees with the hidden tests, which neither a model nor the verifier sees, on real bugs.

For each bug of the catalogue patches of known kinds are judged: the released fix with a test (`right`), a change that
misses the bug (`wrong`), one that breaks other tests (`breaking`), none (`empty`); and, on top of a commit that holds a
failing test of the bug, patches that delete it, skip it, make its assertions hold whatever happens, or write over it
while the tests run. Where the catalogue has no wrong or no breaking change of a bug, one is made that fits any.

What is true of a patch comes from running, not from its name: the project's own tests, and the hidden tests of its next
version, are run on the tree with the patch. A verdict agrees if it is `verified` exactly where the hidden tests pass
and nothing that passed before fails, `breaking` exactly where something does or its file cannot be collected any more,
and `empty` for no change.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from bot.demo.materialise import BugRepository
from sandbox import baseline
from sandbox.checkout import Mirror
from sandbox.comparison import failing, passing, results_of
from sandbox.remotes import Author
from sandbox.results import TestCommand, TestReport, Verdict
from sandbox.setup_plan import detect
from sandbox.testing import discover, run_tests
from sandbox.testing.belonging import belongs_to
from sandbox.types import Backend, Limits, Sandbox, SandboxSpec
from sandbox.verify import VerifyRequest, run_baseline, verify

_LABELS = {"task": "bench-verdicts", "owner": "bench"}
_SETUP_S = 600.0
_TESTS_S = 600.0
_SOURCE_CHANGE = "\n# Reviewed.\n"
_IDLE_TEST = "def test_idle():\n    assert 1 + 1 == 2\n"
_RAISES = '\nraise RuntimeError("This module cannot be used.")\n'


@dataclass(frozen=True)
class Judged:
    """One patch, what is true of it, and what the verifier said."""

    bug: str
    kind: str
    verdict: Verdict
    score: float
    truth: Verdict
    summary: str = ""
    """The verifier's own words."""

    @property
    def agrees(self) -> bool:
        if self.truth == "unverified":
            return self.verdict in ("unverified", "rejected")
        return self.verdict == self.truth


@dataclass(frozen=True)
class _Change:
    """Edits of a checkout."""

    kind: str
    additions: Sequence[tuple[str, str]] = ()
    """Path and text for the end of that file, or for a new one."""
    patch: str = ""
    replaced: Sequence[tuple[str, str | None]] = ()
    """Path and its new content; None deletes it."""


def judge_all(backend: Backend, repositories: Sequence[BugRepository], folder: Path) -> Iterator[Judged]:
    """Judge every patch of every bug, one after the other."""
    for repository in repositories:
        place = folder / repository.bug.name
        place.mkdir()
        yield from _Court(backend, repository, place).judge()


class _Court:
    """One bug's mirror, image and commands."""

    def __init__(self, backend: Backend, repository: BugRepository, folder: Path) -> None:
        self._backend = backend
        self._repository = repository
        self._bug = repository.bug
        self._folder = folder
        self._mirror = Mirror.from_local(repository.git_dir, folder / "mirror.git").mirror
        archive = self._archive(repository.base_sha)
        plan = detect(archive, commands=None, base=backend.ensure_base(), shared_with="the bench")
        image = backend.prepare(archive, plan, timeout_s=_SETUP_S, labels=_LABELS)
        self._spec = SandboxSpec(image, _LABELS, Limits(cpus=2.0))
        command = discover(archive, None)
        assert command is not None
        self._command = command

    def judge(self) -> Iterator[Judged]:
        bug, test = self._bug, (self._bug.regression_test.path, self._bug.regression_test.text)
        plain = [_Change("right", [test], self._repository.fix_patch), _Change("empty")]
        source = (min(bug.fix), _SOURCE_CHANGE)
        beside = PurePosixPath(test[0]).parent
        missing = (str(beside / "test_0_idle.py"), _IDLE_TEST)
        plain.append(_Change("wrong", [(bug.misses.path, bug.misses.text)] if bug.misses else [source, missing]))
        broken = [(bug.breaks.path, bug.breaks.text)] if bug.breaks else [(min(bug.fix), _RAISES)]
        plain.append(_Change("breaking", broken))
        yield from self._judge_on(self._repository.base_sha, plain)

        silenced = [
            _Change("deletes the test", [source], replaced=[(test[0], None)]),
            _Change("skips the test", [source], replaced=[(test[0], _skipped(test[1]))]),
            _Change("weakens the test", [source], replaced=[(test[0], _hollow(test[1]))]),
            _Change("writes over the test", [source, (str(beside / "test_0.py"), _writes_over(test[0]))]),
        ]
        yield from self._judge_on(self._with_failing_test(test), silenced)

    def _judge_on(self, base: str, changes: Sequence[_Change]) -> Iterator[Judged]:
        request = VerifyRequest(
            base_sha=base,
            patch="",
            image=self._spec.image,
            labels=_LABELS,
            test_command=self._command,
            task_text=self._bug.issue,
            limits=self._spec.limits,
            test_timeout_s=_TESTS_S,
        )
        before = run_baseline(request, self._backend, self._mirror)
        assert before is not None
        for change in changes:
            patch = self._patch(base, change)
            result = verify(replace(request, patch=patch, before=before), self._backend, self._mirror)
            truth = self._truth(base, patch, before)
            yield Judged(self._bug.name, change.kind, result.verdict, result.score, truth, result.summary)

    def _truth(self, base: str, patch: str, before: TestReport) -> Verdict:
        if not patch:
            return "empty"
        with self._sandbox(self._mirror.tree_with_patch(base, patch)) as sandbox:
            own = run_tests(sandbox, self._command, timeout_s=_TESTS_S)
            gone = passing(before) - set(results_of(own))
            if passing(before) & failing(own) or any(map(belongs_to(failing(own)), gone)):
                return "breaking"  # they fail, or their files cannot even be collected
            for path, content in self._repository.hidden_tests.items():
                sandbox.put_file(path, content)
            nodes = " ".join(shlex.quote(node) for node in self._bug.hidden.ids)
            command = TestCommand(f"python3 -m pytest {nodes}", "pytest", "hidden")
            hidden = run_tests(sandbox, command, timeout_s=_TESTS_S)
        solved = bool(results_of(hidden)) and not hidden.note and not failing(hidden) and hidden.exit_code == 0
        return "verified" if solved else "unverified"

    def _patch(self, base: str, change: _Change) -> str:
        with self._sandbox(base) as sandbox:
            baseline.lay(sandbox)
            if change.patch:
                sandbox.put_file("/tmp/fix.patch", change.patch.encode())  # noqa: S108  (inside the sandbox)
                applied = sandbox.execute("git apply /tmp/fix.patch", timeout_s=30)
                assert applied.exit_code == 0, applied.output
            for path, text in change.additions:
                sandbox.put_file(path, (sandbox.read_file(path) or b"") + text.encode())
            for path, content in change.replaced:
                if content is None:
                    sandbox.execute(f"rm {shlex.quote(path)}", timeout_s=10)
                else:
                    sandbox.put_file(path, content.encode())
            return baseline.take_patch(sandbox)

    def _with_failing_test(self, test: tuple[str, str]) -> str:
        """Return a commit that is the buggy version with a test of the bug."""
        base = self._repository.base_sha
        tree = self._mirror.tree_with_patch(base, self._patch(base, _Change("test", [test])))
        when = datetime(2025, 1, 1, tzinfo=UTC)
        return self._mirror.commit(tree, base, "Add a failing test", Author("bench", "bench@localhost"), when)

    @contextmanager
    def _sandbox(self, treeish: str) -> Iterator[Sandbox]:
        sandbox = self._backend.open(self._spec)
        try:
            sandbox.put_tree(self._archive(treeish))
            yield sandbox
        finally:
            sandbox.close()

    def _archive(self, treeish: str) -> Path:
        archive = self._folder / f"{treeish}.tar"
        if not archive.exists():
            self._mirror.archive(treeish, archive)
        return archive


def _skipped(test: str) -> str:
    return "import pytest\n" + re.sub(r"^(?=def test_)", "@pytest.mark.skip\n", test, flags=re.MULTILINE)


def _writes_over(test: str) -> str:
    """Return a module that is collected before the test and hollows it."""
    return (
        "import re\nfrom pathlib import Path\n\n"
        f"other = Path(__file__).with_name({PurePosixPath(test).name!r})\n"
        "other.write_text(re.sub(r'(?m)^(\\s+)assert .*$', r'\\1assert True', other.read_text()))\n"
    )


def _hollow(test: str) -> str:
    return re.sub(r"^(\s+)assert (.*)$", r"\1assert True or \2", test, flags=re.MULTILINE)

"""Verifies a patch by running the repository's own tests in fresh sandboxes, without it and with it."""

import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Protocol

from sandbox import verdict
from sandbox.agreement import EarlierPatch
from sandbox.ahead import Opener, SandboxesAhead
from sandbox.comparison import compare, failing_of, passing, proving
from sandbox.errors import PatchError, SandboxError
from sandbox.lint import Finding, lint, with_findings
from sandbox.opinions import Judge
from sandbox.parsing import unparsable
from sandbox.patch import PatchReport, PatchRules, inspect_patch, subset
from sandbox.patch_text import FileChange
from sandbox.reading import Facts
from sandbox.results import TestCommand, TestReport, VerificationResult
from sandbox.testing import batches
from sandbox.testing.discovery import is_plain_pytest
from sandbox.testing.examples import extract, run_examples
from sandbox.testing.integrity import digests
from sandbox.testing.near import nearest
from sandbox.testing.paths import is_test_module
from sandbox.testing.run import run_tests
from sandbox.types import FileDigest, Limits, Sandbox, SandboxSpec

_EXAMPLE_S = 20.0
_LINT_S = 120.0
"""Of one linter."""


class Trees(Protocol):
    """A repository's trees, made without a working tree on the host (`sandbox.checkout.Mirror`)."""

    def archive(self, treeish: str, destination: Path) -> None:
        """Write a tree as an uncompressed tar."""
        ...

    def tree_with_patch(self, base_sha: str, patch: str) -> str:
        """Return the id of the tree that is `base_sha`'s with the patch.

        Raises:
            PatchError: the patch does not apply.
        """
        ...


@dataclass(frozen=True)
class VerifyRequest:
    """What to verify, and with what."""

    base_sha: str
    patch: str
    image: str
    """A reference that the backend's `prepare` gave."""
    labels: Mapping[str, str]
    """As in SandboxSpec."""
    test_command: TestCommand | None
    """None: the repository has no tests."""
    setup: Sequence[str] = ()
    """The commands that made the image, for people who check the verdict by hand."""
    lint: Sequence[str] = ()
    """Commands whose new findings count."""
    task_text: str = ""
    """The issue's text, whose examples are run as evidence."""
    dimension: str = ""
    """The kind of task, a word of the router's: it says how much each signal counts."""
    before: TestReport | None = None
    """The tests' results at `base_sha` in the same image, where they are known already."""
    earlier: Sequence[EarlierPatch] = ()
    """Other models' patches for the same task that nothing speaks against."""
    judge: Judge | None = None
    """Asked for an opinion on a patch that breaks nothing."""
    limits: Limits = field(default_factory=Limits)
    rules: PatchRules = field(default_factory=PatchRules)
    test_timeout_s: float = 600.0


def verify(request: VerifyRequest, sandboxes: Opener, trees: Trees) -> VerificationResult:
    """Return what running the tests says about a patch.

    A patch's tests are run on the old source as well, its source is run against the tests as they were, and results
    that changed are run again, each in a sandbox of its own.

    Raises:
        SandboxError: a sandbox could not be started. What goes wrong inside one is part of the result.
    """
    if not request.patch.strip():
        return verdict.empty()
    report = inspect_patch(request.patch, request.rules, request.test_command)
    if report.rejected:
        return verdict.rejected(report.rejected)
    try:
        tree = trees.tree_with_patch(request.base_sha, request.patch)
    except PatchError as error:
        return verdict.rejected([f"The patch does not apply: {error}"])
    with tempfile.TemporaryDirectory(prefix="acrouter-verify-") as folder:
        runs = _Runs(request, sandboxes, trees, Path(folder))
        try:
            return _reached(request, report, tree, runs)
        finally:
            runs.expect(None)


def _reached(request: VerifyRequest, report: PatchReport, tree: str, runs: "_Runs") -> VerificationResult:
    facts = _collect(request, report, tree, runs)
    result = verdict.reach(facts)
    if result.verdict == "breaking":
        return result
    if request.judge is not None:
        result = verdict.reach(replace(facts, opinion=request.judge(request.task_text, request.patch)))
    return with_findings(result, _lint(request, tree, runs)) if request.lint else result


def run_baseline(request: VerifyRequest, sandboxes: Opener, trees: Trees) -> TestReport | None:
    """Return the tests' results without the patch, for `VerifyRequest.before` of later attempts."""
    if request.test_command is None:
        return None
    with tempfile.TemporaryDirectory(prefix="acrouter-verify-") as folder:
        return _Runs(request, sandboxes, trees, Path(folder)).tests(request.base_sha, request.test_command)


class _Runs:
    """Runs things in fresh sandboxes over trees of one request."""

    def __init__(self, request: VerifyRequest, sandboxes: Opener, trees: Trees, folder: Path) -> None:
        self._request = request
        self._sandboxes = sandboxes
        self._trees = trees
        self._folder = folder
        self._numbers = count()
        self._archives: dict[str, Path] = {}
        self._digests: dict[str, Mapping[str, FileDigest]] = {}
        self.lints = bool(request.lint)
        """Whether linters run after the tests."""
        self.parts: Sequence[Sequence[str]] = ()
        """Test files, for a suite that is too large to run whole; empty: all at once."""

    def archive(self, tree: str) -> Path:
        if tree not in self._archives:
            path = self._folder / f"{next(self._numbers)}.tar"
            self._trees.archive(tree, path)
            self._archives[tree] = path
        return self._archives[tree]

    def expect(self, count: int | None) -> None:
        """Say that `count` more sandboxes at most will be asked for; None: that nobody knows."""
        if isinstance(self._sandboxes, SandboxesAhead):
            self._sandboxes.expect(count)

    @contextmanager
    def sandbox(self, tree: str) -> Iterator[Sandbox]:
        archive = self.archive(tree)
        spec = SandboxSpec(self._request.image, self._request.labels, self._request.limits)
        sandbox = self._sandboxes.open(spec)
        try:
            sandbox.put_tree(archive)
            yield sandbox
        finally:
            sandbox.close()

    def tests(
        self,
        tree: str,
        command: TestCommand,
        only: Sequence[str] = (),
        first: Callable[[Sandbox], None] | None = None,
    ) -> TestReport:
        with self.sandbox(tree) as sandbox:
            if first:
                first(sandbox)
            try:
                report = self._run(sandbox, tree, command, only)
                return replace(report, rewritten=sandbox.changed(self._expected(tree)))
            except SandboxError as error:  # the tests took their sandbox down
                return TestReport(command.command, {}, 137, False, 0.0, str(error), f"The sandbox ended: {error}.")

    def _run(self, sandbox: Sandbox, tree: str, command: TestCommand, only: Sequence[str]) -> TestReport:
        timeout_s = self._request.test_timeout_s
        if only or not self.parts:
            return run_tests(sandbox, command, timeout_s=timeout_s, only=only)
        there = self._expected(tree)
        parts = [found for part in self.parts if (found := [path for path in part if path in there])]
        return batches.run_parts(sandbox, command, parts, timeout_s=timeout_s)

    def _expected(self, tree: str) -> Mapping[str, FileDigest]:
        if tree not in self._digests:
            self._digests[tree] = digests(self.archive(tree))
        return self._digests[tree]

    def with_part(self, files: Sequence[FileChange]) -> str | None:
        """Return the tree with a part of the patch, or None where that part does not stand by itself."""
        try:
            return self._trees.tree_with_patch(self._request.base_sha, subset(files))
        except PatchError:
            return None

    def examples(self, tree: str) -> dict[str, bool]:
        found = extract(self._request.task_text)
        if not found:
            return {}
        with self.sandbox(tree) as sandbox:
            try:
                return run_examples(sandbox, found, timeout_s=_EXAMPLE_S)
            except SandboxError:
                return {}


def _collect(request: VerifyRequest, report: PatchReport, tree: str, runs: _Runs) -> Facts:
    examples_before, examples_after = _examples(request.base_sha, tree, runs)
    facts = Facts(
        report,
        examples_before=examples_before,
        examples_after=examples_after,
        timeout_s=request.test_timeout_s,
        dimension=request.dimension,
        task_text=request.task_text,
        earlier=request.earlier,
        command=request.test_command,
        setup=request.setup,
    )
    command = request.test_command
    if command is None:
        with runs.sandbox(tree) as sandbox:
            return replace(facts, unparsable=unparsable(sandbox, report.files, None))
    before = baseline = request.before or runs.tests(request.base_sha, command)
    hopeless = before.note and not (before.timed_out or before.not_collected)
    if request.before is not None and hopeless:  # nothing can be measured against it
        return replace(facts, before=before, after=before, unparsable=None)
    if before.timed_out and command.runner == "pytest" and is_plain_pytest(command.command):
        near, others = nearest(runs.archive(tree), [change.path for change in report.files])
        runs.parts = batches.split(near, others)
        before = runs.tests(request.base_sha, command)
    unread: list[Sequence[str] | None] = [None]

    def parse(sandbox: Sandbox) -> None:
        unread[0] = unparsable(sandbox, report.files, command.runner)

    after = runs.tests(tree, command, first=parse)
    if runs.parts:
        before, after = batches.comparable(
            before, after, [change.path for change in report.test_files if change.kind == "added"]
        )
    unfixed = _unfixed(report, command, runs)
    facts = replace(
        facts,
        baseline=baseline,
        before=before,
        after=after,
        unfixed=unfixed,
        unparsable=unread[0],
        suite_files=sum(map(len, runs.parts)),
    )
    facts = replace(facts, originals=_originals(report, before, after, command, runs))
    return replace(facts, flaky=_flaky(facts, request.base_sha, tree, command, runs))


def _examples(base: str, tree: str, runs: _Runs) -> tuple[Mapping[str, bool], Mapping[str, bool]]:
    """Run the task's examples without and with the patch; those that changed once more, and what does not repeat itself
    is left out.
    """
    before, after = runs.examples(base), runs.examples(tree)
    changed = {name for name, holds in after.items() if holds and not before.get(name, True)}
    if not changed:
        return before, after
    again, without = runs.examples(tree), runs.examples(base)
    flaky = {name for name in changed if not again.get(name) or without.get(name, True)}
    steady = [name for name in after if name not in flaky]
    return {name: before[name] for name in steady if name in before}, {name: after[name] for name in steady}


def _lint(request: VerifyRequest, tree: str, runs: _Runs) -> Sequence[Finding]:
    without, with_patch = (partial(runs.sandbox, each) for each in (request.base_sha, tree))
    return lint(request.lint, without, with_patch, timeout_s=min(request.test_timeout_s, _LINT_S))


def _unfixed(report: PatchReport, command: TestCommand, runs: _Runs) -> TestReport | None:
    """Run the patch's tests on the old source."""
    modules = [change.path for change in report.test_files if change.kind != "deleted" and is_test_module(change.path)]
    selects = command.runner in ("pytest", "unittest")
    if not report.source_files or not report.test_files or (selects and not modules):
        return None
    tree = runs.with_part(report.test_files)
    return None if tree is None else runs.tests(tree, command, modules)


def _originals(
    report: PatchReport, before: TestReport, after: TestReport, command: TestCommand, runs: _Runs
) -> TestReport | None:
    """Run on the new source, with all test files as they were, the tests that the patch could have bent."""
    if not report.source_files or not report.edits_tests:
        return None
    tree = runs.with_part(report.source_files)
    if tree is None:
        return None
    edited = [change.path for change in report.test_files if change.kind != "added"]
    fixed = compare(before, after, edited).fail_to_pass
    selects = command.runner in ("pytest", "unittest")
    if not selects or report.edits_test_support or any(not test.split("::", 1)[0].endswith(".py") for test in fixed):
        return runs.tests(tree, command)
    return runs.tests(tree, command, sorted({*edited, *(test.split("::", 1)[0] for test in fixed)}))


def _flaky(facts: Facts, base: str, tree: str, command: TestCommand, runs: _Runs) -> frozenset[str]:
    """Run what changed once more; return the tests that do not repeat themselves."""
    before, after = facts.before, facts.after
    if before is None or after is None or after.timed_out:
        return frozenset()
    edited, changed = ([change.path for change in files] for files in (facts.patch.test_files, facts.patch.files))
    changes = compare(before, after, edited, changed=changed)
    good = set(changes.fail_to_pass) | proving(before, facts.unfixed, after)
    runs.expect(bool(changes.pass_to_fail) + bool(good) + bool(changes.fail_to_pass) + 2 * runs.lints)
    flaky: set[str] = set()
    if changes.pass_to_fail:
        # All of them: a test that fails only after others is broken, and would pass by itself.
        flaky |= set(changes.pass_to_fail) & passing(runs.tests(tree, command))
    if good:
        flaky |= good - passing(runs.tests(tree, command, _files(good, command)))
    if changes.fail_to_pass:
        # Fixed without the patch, too?
        without = runs.tests(base, command, _files(changes.fail_to_pass, command))
        flaky |= set(changes.fail_to_pass) - failing_of(changes.fail_to_pass, without)
    return frozenset(flaky)


def _files(tests: Collection[str], command: TestCommand) -> Sequence[str]:
    """Return the files of pytest's node ids, or nothing (all tests) where they cannot be run by themselves."""
    files = {test.split("::", 1)[0] for test in tests}
    plain = command.runner == "pytest" and is_plain_pytest(command.command)
    return sorted(files) if plain and all(file.endswith(".py") for file in files) else ()

"""Inspects a patch before anything is done with it: what it touches, and what must not be applied."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from sandbox import patch_text
from sandbox.errors import PatchError
from sandbox.globs import matches
from sandbox.patch_text import FileChange
from sandbox.results import TestCommand
from sandbox.secret_patterns import find_secrets
from sandbox.testing.paths import how_tests_run, is_test_module, is_test_path
from sandbox.testing.weakening import inline_weakenings, weakenings

BLOCKED = (
    ".github/workflows/**",
    ".github/actions/**",
    ".gitlab-ci.yml",
    ".circleci/**",
    ".travis.yml",
    ".buildkite/**",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    "Jenkinsfile",
    ".gitmodules",
    ".acrouter.yml",
)
"""CI, submodules and our own configuration: a change there runs with more rights than the change of a source."""

LOCK_FILES = frozenset(
    {
        *("poetry.lock", "uv.lock", "pdm.lock", "Pipfile.lock"),
        *("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock"),
        *("Cargo.lock", "go.sum", "Gemfile.lock", "composer.lock", "gradle.lockfile", "mix.lock"),
    }
)

_LINK, _SUBMODULE = "120000", "160000"
_DOT_GIT = re.compile(r"\.git|git~\d+", re.IGNORECASE)


@dataclass(frozen=True)
class PatchRules:
    """What a patch may do."""

    blocked: Sequence[str] = BLOCKED
    """Globs (`*` within a folder, `**` across; a pattern without a slash matches in every folder), any case."""
    allowed: Sequence[str] = ()
    """Globs of the only paths that may be touched; empty: all that are not blocked."""
    max_bytes: int = 500_000
    max_files: int = 50
    allow_binary: bool = True
    """Binary changes are a warning; False: they are rejected."""


@dataclass(frozen=True)
class Finding:
    """One remark about a patch, as a sentence for people. `path` is empty where it is about the whole."""

    kind: str
    path: str
    message: str
    rejects: bool


@dataclass(frozen=True)
class PatchReport:
    files: Sequence[FileChange]
    findings: Sequence[Finding]
    how_tests_run: frozenset[str] = frozenset()
    """Files that say what the test command does: they are of the tests, whatever their names."""

    @property
    def rejected(self) -> list[str]:
        """Why the patch must not be applied; empty where it may."""
        return [finding.message for finding in self.findings if finding.rejects]

    @property
    def warnings(self) -> list[str]:
        return [finding.message for finding in self.findings if not finding.rejects]

    @property
    def added_lines(self) -> int:
        return sum(len(change.added) for change in self.files)

    @property
    def removed_lines(self) -> int:
        return sum(len(change.removed) for change in self.files)

    @property
    def test_files(self) -> list[FileChange]:
        return [change for change in self.files if self._is_of_tests(change.path)]

    @property
    def edits_test_support(self) -> bool:
        """Whether it touches what any test may use: conftest.py, helpers, data, the runner's configuration."""
        return any(not is_test_module(change.path) for change in self.test_files)

    @property
    def edits_tests(self) -> bool:
        """Whether tests that were there may run differently for it, the source aside."""
        return self.edits_test_support or any(change.kind != "added" for change in self.test_files)

    @property
    def source_files(self) -> list[FileChange]:
        return [change for change in self.files if not self._is_of_tests(change.path)]

    def _is_of_tests(self, path: str) -> bool:
        return is_test_path(path) or path in self.how_tests_run

    @property
    def weakens_tests(self) -> list[str]:
        return [finding.message for finding in self.findings if finding.kind == "weakened-tests"]


def inspect_patch(patch: str, rules: PatchRules | None = None, test_command: TestCommand | None = None) -> PatchReport:
    """Return what a patch touches and what is wrong with it. Never raises on a bad patch: that is a finding."""
    rules = rules or PatchRules()
    size = len(patch.encode("utf-8", "surrogateescape"))
    findings: list[Finding] = []
    if size > rules.max_bytes:
        findings.append(Finding("too-large", "", f"The patch has {size} bytes; {rules.max_bytes} are allowed.", True))
        if size > 10 * rules.max_bytes:  # not even read
            return PatchReport((), findings)
    try:
        files = patch_text.read(patch)
    except PatchError as error:
        return PatchReport((), [*findings, Finding("unreadable", "", str(error), True)])
    if len(files) > rules.max_files:
        message = f"The patch changes {len(files)} files; {rules.max_files} are allowed."
        findings.append(Finding("too-many-files", "", message, True))
    for change in files:
        findings += _inspect_path(change.path, rules)
        findings += _inspect_content(change, rules)
    return PatchReport(files, findings, how_tests_run(test_command, files))


def subset(files: Sequence[FileChange]) -> str:
    """Return the patch of some of a patch's files."""
    return "".join(change.section for change in files)


def _inspect_path(path: str, rules: PatchRules) -> list[Finding]:
    shown = path.encode("utf-8", "backslashreplace").decode()
    parts = path.split("/")
    if path.startswith(("/", "~")) or re.match(r"[A-Za-z]:", path) or "" in parts or "." in parts or ".." in parts:
        return [Finding("outside", shown, f"The path {shown!r} leads out of the tree or is not a plain one.", True)]
    if any(ord(c) < 32 or ord(c) == 127 or "\ud800" <= c <= "\udfff" or c == "\\" for c in path):
        return [Finding("odd-name", shown, f"The path {shown!r} is not UTF-8 or holds control characters.", True)]
    if any(_is_dot_git(part) for part in parts):
        return [Finding("dot-git", shown, f"The path {shown!r} is inside a .git folder.", True)]
    for pattern in rules.blocked:
        # Case is folded: on some machines the names are the same file.
        if matches(pattern.casefold(), _folded(path)):
            return [Finding("blocked", shown, f"{shown!r} may not be changed by a model ({pattern}).", True)]
    if rules.allowed and not any(matches(pattern.casefold(), _folded(path)) for pattern in rules.allowed):
        message = f"{shown!r} is outside what a model may change here ({', '.join(rules.allowed)})."
        return [Finding("not-allowed", shown, message, True)]
    return []


def _inspect_content(change: FileChange, rules: PatchRules) -> list[Finding]:
    path, found = change.path, []
    modes = {change.old_mode, change.new_mode}
    if _LINK in modes:
        found.append(Finding("symlink", path, f"{path!r} is a symbolic link.", True))
    elif _SUBMODULE in modes:
        found.append(Finding("submodule", path, f"{path!r} is a repository of its own.", True))
    elif change.mode_changed:
        found.append(Finding("mode", path, f"{path!r} changes from {change.old_mode} to {change.new_mode}.", False))
    elif change.kind == "added" and change.new_mode == "100755":
        found.append(Finding("mode", path, f"{path!r} is new and executable.", False))
    if change.binary:
        message = f"{path!r} is a binary change, which nobody can read."
        found.append(Finding("binary", path, message, not rules.allow_binary))
    kinds = find_secrets("\n".join(change.added))
    found += [Finding("secret", path, f"{path!r} seems to add {kind}.", True) for kind in kinds]
    if path.rsplit("/", 1)[-1] in LOCK_FILES:
        message = f"{path!r} is a lock file: the tests ran with the versions that it named before."
        found.append(Finding("lock", path, message, False))
    weaker = weakenings(change) if is_test_path(path) else inline_weakenings(change)
    found += [Finding("weakened-tests", path, message, False) for message in weaker]
    return found


def _folded(path: str) -> str:
    """Fold case, and drop the characters that HFS+ ignores in names."""
    return "".join(c for c in unicodedata.normalize("NFKC", path) if unicodedata.category(c) != "Cf").casefold()


def _is_dot_git(part: str) -> bool:
    # `.git.`, `.git ` and `.git::$DATA` are .git on Windows, `git~1` is its short name.
    return _DOT_GIT.fullmatch(_folded(part).split(":", 1)[0].rstrip(". ")) is not None

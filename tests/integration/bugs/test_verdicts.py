"""On real bugs, in real containers, the verdict agrees with the hidden tests that neither model nor verifier sees.

That the hidden tests fail before and pass with the fix, and fail with a change that misses, is in
`test_catalogue_is_true.py`.
"""

import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bot.demo.bugs import Addition, Bug
from sandbox.checkout import Mirror
from sandbox.docker_backend import DockerBackend
from sandbox.results import VerificationResult
from sandbox.setup_plan import detect
from sandbox.testing import discover
from sandbox.types import Limits
from sandbox.verify import VerifyRequest, run_baseline, verify
from tests.support.bugs import JUDGED, MakeBug, add, check_out

pytestmark = [pytest.mark.docker, pytest.mark.timeout(400)]

LABELS = {"task": "verdicts", "owner": "tests"}


@dataclass(frozen=True)
class Bench:
    """A bug with all that verifying a patch for it needs; its baseline is measured once."""

    bug: Bug
    fix: str
    folder: Path
    make_bug: MakeBug
    request: VerifyRequest
    backend: DockerBackend
    mirror: Mirror

    def judge(self, patch: str) -> VerificationResult:
        return verify(replace(self.request, patch=patch), self.backend, self.mirror)

    def patch_of(self, name: str, *additions: Addition, fix: bool = False) -> str:
        """The patch that makes these additions to a checkout, on top of the fix or without it."""
        tree = check_out(self.make_bug(self.bug.name), self.folder / name, *([self.fix] if fix else []))
        for addition in additions:
            add(tree, addition)
        subprocess.run(["git", "add", "-A"], cwd=tree, check=True)
        command = ["git", "diff", "--cached", "--binary", "--full-index"]
        return subprocess.run(command, cwd=tree, check=True, capture_output=True, text=True).stdout


@pytest.fixture(params=JUDGED)
def bench(request: pytest.FixtureRequest, make_bug: MakeBug, tmp_path: Path) -> Iterator[Bench]:
    repository = make_bug(request.param)
    backend = DockerBackend("acrouter/base:1", Limits(cpus=2.0), instance=f"tests-{uuid.uuid4().hex}")
    checkout = Mirror.from_local(repository.git_dir, tmp_path / "mirror.git")
    archive = tmp_path / "tree.tar"
    checkout.mirror.archive(repository.base_sha, archive)
    plan = detect(archive, commands=None, base=backend.ensure_base(), shared_with="tests")
    to_verify = VerifyRequest(
        base_sha=repository.base_sha,
        patch="",
        image=backend.prepare(archive, plan, timeout_s=300, labels=LABELS),
        labels=LABELS,
        test_command=discover(archive, None),
        task_text=repository.bug.issue,
    )
    to_verify = replace(to_verify, before=run_baseline(to_verify, backend, checkout.mirror))
    yield Bench(repository.bug, repository.fix_patch, tmp_path, make_bug, to_verify, backend, checkout.mirror)
    backend.remove_task(LABELS["task"])


def test_right_wrong_breaking_empty_and_test_only_patches_are_told_apart(bench: Bench) -> None:
    bug = bench.bug
    assert bench.request.before is not None
    if not bug.needs:  # packages that the project's own metadata does not name are not set up
        assert bench.request.before.failed == 0, "the project's own tests pass with the bug"
    assert bench.request.before.passed > 50

    right = bench.judge(bench.patch_of("right", bug.regression_test, fix=True))
    assert right.verdict == "verified", right.summary
    assert right.fail_to_pass
    assert right.score >= 0.7

    assert bench.judge("").verdict == "empty"

    test_only = bench.judge(bench.patch_of("test only", bug.regression_test))
    assert test_only.verdict not in ("verified", "breaking"), test_only.summary
    assert test_only.score < right.score

    if bug.misses:
        wrong = bench.judge(bench.patch_of("wrong", bug.misses))
        assert wrong.verdict == "unverified", wrong.summary
        assert wrong.score < 0.7
    if bug.breaks:
        breaking = bench.judge(bench.patch_of("breaking", bug.breaks, bug.regression_test))
        assert breaking.verdict == "breaking", breaking.summary
        assert breaking.pass_to_fail
        assert breaking.score <= 0.2

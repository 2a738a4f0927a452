"""The repository's linters run in sandboxes of their own, on the tree with the patch and without it."""

from pathlib import Path

import pytest

from sandbox.docker_backend import DockerBackend
from sandbox.results import Signal
from sandbox.testing import discover
from sandbox.verify import VerifyRequest, verify
from tests.support.small_project import SOURCE, small_project

LINT = "! grep -n 'eval\\|len(numbers) - 1' stats.py"
LABELS = {"task": "1", "owner": "tests"}


@pytest.mark.docker
def test_a_new_finding_of_a_linter_is_a_signal(docker_backend: DockerBackend, tmp_path: Path) -> None:
    project = small_project(tmp_path)
    command = discover(project.archive(tmp_path / "base.tar"), None)
    patch = project.patch({"stats.py": SOURCE + "\n\ndef top(text):\n    return max(eval(text))\n"})
    request = VerifyRequest(
        project.sha, patch, docker_backend.ensure_base(), LABELS, command, lint=[LINT], test_timeout_s=60
    )
    result = verify(request, docker_backend, project.mirror)
    assert result.verdict == "unverified"
    line = SOURCE.count("\n") + 4
    evidence = f"`{LINT}` says with the patch: {line}:    return max(eval(text))."
    assert result.signals[-1] == Signal("lint", 0.0, 0.04, evidence)

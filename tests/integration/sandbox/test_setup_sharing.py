"""What a set-up leaves reaches no code but that of the same repository's default branch, or of the very same tree."""

import uuid
from pathlib import Path

from sandbox import setup_plan
from sandbox.setup_sharing import of_default_branch, of_tree
from sandbox.types import Backend, SandboxSpec
from tests.support.repositories import make_archive

LABELS = {"task": "1", "owner": "tests"}
# A build backend of the tree's own: nothing that a key could know of says what it does.
BUILDER = """
import zipfile
def build_editable(folder, config_settings=None, metadata_directory=None):
    with zipfile.ZipFile(folder + "/demo-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("demo.pth", "/workspace\\n")
        wheel.writestr("demo-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: demo\\nVersion: 1\\n")
        wheel.writestr("demo-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("demo-1.dist-info/RECORD", "")
    return "demo-1-py3-none-any.whl"
"""
POISON = BUILDER + "\nopen('/opt/venv/poison.pth', 'w').write('import evil')\n"
THEIRS = {
    "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "builder"\nbackend-path = ["tools"]\n'
    '[project]\nname = "demo"\nversion = "1"\n',
    "tools/builder.py": BUILDER,
    "shop/__init__.py": "",
}
ATTACKERS = {**THEIRS, "tools/builder.py": POISON}


def test_a_copy_of_a_repository_and_a_forks_pr_cannot_poison_its_environment(
    backend: Backend, tmp_path: Path, forget: list[str]
) -> None:
    base = backend.ensure_base() + uuid.uuid4().hex  # a key of this run alone

    def set_up(files: dict[str, str], shared_with: str) -> str:
        archive = make_archive(tmp_path / f"{uuid.uuid4().hex}.tar", files)
        plan = setup_plan.detect(archive, commands=None, base=base, shared_with=shared_with)
        image = backend.prepare(archive, plan, timeout_s=100, labels=LABELS)
        if image not in forget:
            forget.append(image)
        return image

    def is_poisoned(image: str) -> bool:
        sandbox = backend.open(SandboxSpec(image, LABELS))
        try:
            return sandbox.execute("test -e /opt/venv/poison.pth", timeout_s=20).exit_code == 0
        finally:
            sandbox.close()

    copy = set_up(ATTACKERS, of_default_branch("github.com 666"))
    pull_request = set_up(ATTACKERS, of_tree("github.com 1", "a" * 40))
    own = set_up(THEIRS, of_default_branch("github.com 1"))
    branch = set_up(THEIRS, of_tree("github.com 1", "b" * 40))

    assert [is_poisoned(image) for image in (copy, pull_request, own, branch)] == [True, True, False, False]
    # What is used again: the default branch's next commit, and another try on the same tree.
    assert set_up({**THEIRS, "shop/__init__.py": "x = 1"}, of_default_branch("github.com 1")) == own
    assert set_up(ATTACKERS, of_tree("github.com 1", "a" * 40)) == pull_request

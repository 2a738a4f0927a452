"""What a hostile repository tries in its set-up, which has the network, and by its files alone."""

import uuid
from pathlib import Path

import pytest

from sandbox.docker_backend import DockerBackend
from sandbox.errors import ImageError
from sandbox.notes import contributor_notes
from sandbox.setup_plan import detect
from sandbox.testing import discover
from sandbox.types import Backend, SetupPlan
from tests.support.repositories import make_archive

OWNER = {"task": "1", "owner": "tests"}


def test_a_set_up_that_fills_the_disk_is_stopped_while_it_writes(backend: Backend, tmp_path: Path) -> None:
    """256 MB may be written; 2.4 GB would be, and then nothing for longer than the set-up has."""
    fill = "for i in $(seq 40); do head -c 60M /dev/zero > /opt/venv/f$i; sleep 0.2; done; sleep 100"
    plan = SetupPlan((fill,), uuid.uuid4().hex, "a test")
    archive = make_archive(tmp_path / "tree.tar", {"a.txt": ""})
    with pytest.raises(ImageError, match="more than the 256 MB it may") as stopped:
        backend.prepare(archive, plan, timeout_s=60, labels=OWNER)
    assert int(str(stopped.value).split()[3]) < 1000
    assert backend.remove_task(OWNER["task"]) == 0


def test_a_set_up_that_was_small_enough_all_the_time_is_kept(
    backend: Backend, tmp_path: Path, forget: list[str]
) -> None:
    write = "head -c 30M /dev/zero > /opt/venv/f$i; sleep 0.2; rm /opt/venv/f$i"
    plan = SetupPlan((f"for i in $(seq 12); do {write}; done",), uuid.uuid4().hex, "a test")
    archive = make_archive(tmp_path / "tree.tar", {"a.txt": ""})
    forget.append(backend.prepare(archive, plan, timeout_s=60, labels=OWNER))


@pytest.mark.docker
class TestSetup:
    """A set-up has the network and runs the repository's code; the host is as far away as from any sandbox."""

    def prepare(self, backend: DockerBackend, tmp_path: Path, command: str, files: dict[str, str]) -> str:
        archive = make_archive(tmp_path / "tree.tar", files)
        plan = SetupPlan((command,), uuid.uuid4().hex, "a test")
        return backend.prepare(archive, plan, timeout_s=60, labels=OWNER)

    def test_a_zip_bomb_fills_its_own_disk_only(self, docker_backend: DockerBackend, tmp_path: Path) -> None:
        bomb = (
            "import io, zipfile\n"
            "with zipfile.ZipFile('bomb.zip', 'w', zipfile.ZIP_DEFLATED) as z:\n"
            "    with z.open('zeros', 'w', force_zip64=True) as f:\n"
            "        for _ in range(400): f.write(bytes(1 << 20))\n"
            "zipfile.ZipFile('bomb.zip').extractall('.')\n"
        )
        with pytest.raises(ImageError, match="No space left"):
            self.prepare(docker_backend, tmp_path, "python bomb.py", {"bomb.py": bomb})

    def test_an_archive_that_escapes_reaches_nothing_of_the_host(
        self, docker_backend: DockerBackend, tmp_path: Path
    ) -> None:
        outside = tmp_path / "outside.txt"
        script = (
            "import io, tarfile\n"
            "with tarfile.open('evil.tar', 'w') as tar:\n"
            f"    for name in ('../../../../../../../..{outside}', '/etc/passwd', '/usr/bin/git'):\n"
            "        info = tarfile.TarInfo(name); info.size = 4; tar.addfile(info, io.BytesIO(b'evil'))\n"
        )
        command = "python evil.py && (tar -xPf evil.tar 2>&1; true) && git --version && head -c 4 /etc/passwd && exit 3"
        with pytest.raises(ImageError) as failed:
            self.prepare(docker_backend, tmp_path, command, {"evil.py": script})
        assert not outside.exists()
        assert "git version" in str(failed.value)
        assert str(failed.value).rstrip().endswith("root")

    @pytest.mark.parametrize(
        "files",
        [
            {"package.json": '{"scripts": {"preinstall": "touch CANARY", "test": "touch CANARY"}}'},
            {"Makefile": "X := $(shell touch CANARY)\ntest:\n\ttouch CANARY\n"},
            {".gitattributes": "* filter=evil diff=evil\n", ".gitconfig": '[filter "evil"]\n\tsmudge = touch CANARY\n'},
            {"conftest.py": "open('CANARY', 'w')\n", "setup.py": "open('CANARY', 'w')\n"},
        ],
        ids=["package.json", "Makefile", ".gitattributes", "conftest.py"],
    )
    def test_looking_at_a_hostile_repository_runs_nothing_of_it(self, tmp_path: Path, files: dict[str, str]) -> None:
        canary = tmp_path / "canary"
        archive = make_archive(
            tmp_path / "tree.tar", {name: text.replace("CANARY", str(canary)) for name, text in files.items()}
        )
        detect(archive, commands=None, base="b", shared_with="tests")
        discover(archive, None)
        contributor_notes(archive)
        assert not canary.exists()

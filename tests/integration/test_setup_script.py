"""`scripts/setup.sh`, which `make demo` runs first: what an interrupted or moved set-up leaves does not stay broken."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Stands in for Python, so that no package is downloaded. As in the real one, a venv has no pip before `venv` ends, and
# pip leaves a package alone whose metadata is there, whole or not.
_PYTHON = r"""#!/bin/sh
printf '%s\n' "$*" >>"$CALLS"
here="$(dirname "$0")"
case "$*" in
"-m venv .venv")
    mkdir -p .venv/bin
    cp "$STAND_IN" .venv/bin/python
    [ "${KILLED_IN:-}" != venv ] || { kill -9 $PPID; exit 137; }
    touch .venv/bin/pip ;;
"-m pip install"*uv*)
    [ -e "$here/pip" ] || { echo "No module named pip" >&2; exit 1; }
    [ ! -e "$here/uv.dist-info" ] || exit 0
    touch "$here/uv.dist-info" "$here/uv"
    [ "${KILLED_IN:-}" != uv ] || { kill -9 $PPID; exit 137; }
    cp "$(dirname "$STAND_IN")/uv" "$here/uv"
    chmod +x "$here/uv" ;;
esac
"""

_UV = r"""#!/bin/sh
printf 'uv %s\n' "$*" >>"$CALLS"
[ "${KILLED_IN:-}" != packages ] || kill -9 $PPID
[ -z "${NO_NETWORK:-}" ] || { echo "error: no such version" >&2; exit 2; }
"""


class Checkout:
    """What of the repository its set-up reads, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "acrouter"
        self.calls = folder / "calls"
        self.said = ""
        self.stand_in = folder / "python"
        for path, script in ((self.stand_in, _PYTHON), (folder / "uv", _UV)):
            path.write_text(script)
            path.chmod(0o755)
        (self.folder / "scripts").mkdir(parents=True)
        shutil.copy(ROOT / "scripts" / "setup.sh", self.folder / "scripts")
        shutil.copy(ROOT / "pyproject.toml", self.folder)
        shutil.copytree(ROOT / "requirements", self.folder / "requirements")

    def set_up(self, killed_in: str = "", *, no_network: str = "") -> tuple[int, list[str]]:
        """Return the exit status and what was asked of Python and uv; `said` is what a person reads."""
        self.calls.write_text("")
        stands_in = {"PYTHON": self.stand_in, "STAND_IN": self.stand_in, "CALLS": self.calls, "KILLED_IN": killed_in}
        stands_in["NO_NETWORK"] = no_network
        done = subprocess.run(
            ["sh", "scripts/setup.sh", "core"],
            cwd=self.folder,
            env=os.environ | {name: str(value) for name, value in stands_in.items()},
            capture_output=True,
            timeout=60,
            check=False,
        )
        self.said = done.stderr.decode()
        return done.returncode, [line for line in self.calls.read_text().splitlines() if not line.startswith("-c")]

    def assert_complete(self) -> None:
        assert self.set_up() == (0, []), "a finished set-up is left alone"
        assert os.access(self.folder / ".venv" / "bin" / "uv", os.X_OK)


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


@pytest.mark.parametrize("window", ["venv", "uv", "packages"])
def test_a_set_up_that_was_killed_is_made_anew(checkout: Checkout, window: str) -> None:
    assert checkout.set_up(killed_in=window)[0] == -9
    status, calls = checkout.set_up()
    assert (status, calls[0]) == (0, "-m venv .venv")
    checkout.assert_complete()


def test_a_folder_that_was_moved_is_set_up_anew(checkout: Checkout) -> None:
    assert checkout.set_up()[0] == 0
    checkout.folder = checkout.folder.rename(checkout.folder.with_name("moved"))
    status, calls = checkout.set_up()
    assert (status, calls[0]) == (0, "-m venv .venv")
    checkout.assert_complete()


def test_a_new_lock_file_is_installed_into_the_venv_that_is_there(checkout: Checkout) -> None:
    assert checkout.set_up()[0] == 0
    with (checkout.folder / "requirements" / "core.txt").open("a") as file:
        file.write("# newer\n")
    assert checkout.set_up(killed_in="packages")[0] == -9
    status, calls = checkout.set_up()
    assert (status, calls[0]) == (0, "-m venv .venv"), "nobody knows what the killed one left"

    with (checkout.folder / "requirements" / "core.txt").open("a") as file:
        file.write("# newer still\n")
    status, calls = checkout.set_up()
    assert status == 0
    assert calls
    assert "-m venv .venv" not in calls
    checkout.assert_complete()


def test_a_venv_that_somebody_made_and_filled_is_kept(checkout: Checkout) -> None:
    programs = checkout.folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    shutil.copy(checkout.stand_in, programs / "python")
    (programs / "pip").touch()
    (programs / "an-extra").touch()
    status, calls = checkout.set_up()
    assert (status, "-m venv .venv" in calls) == (0, False)
    assert (programs / "an-extra").exists()
    assert "using the .venv that is here" in checkout.said
    checkout.assert_complete()


def test_packages_that_do_not_come_are_told_in_words(checkout: Checkout) -> None:
    assert checkout.set_up(no_network="yes")[0] == 2
    assert checkout.said.endswith(
        "error: no such version\n"
        "acrouter: installing the Python packages failed; the lines above say why. It needs a network and 2.5 GB of "
        "free disk. Then run it again.\n"
    )
    assert checkout.set_up()[0] == 0
    assert "failed" not in checkout.said

"""A sandbox that isolates nothing: a folder and plain processes, for unit tests with commands of their own only."""

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from sandbox.types import WORKSPACE, CommandResult, FileDigest


class LocalSandbox:
    """Fulfils `sandbox.types.Sandbox`. The paths of a real one are replaced in commands by folders below `root`."""

    def __init__(self, root: Path) -> None:
        self.workspace = root / "workspace"
        self.tmp = root / "tmp"
        self.workspace.mkdir(parents=True)
        self.tmp.mkdir()
        self.commands: list[str] = []
        self.closed = False

    def execute(self, command: str, *, timeout_s: float, trusted: bool = False) -> CommandResult:
        if not trusted:
            self.commands.append(command)
        started = time.monotonic()
        try:
            done = subprocess.run(
                ["bash", "-c", self._localised(command)],
                check=False,
                cwd=self.workspace,
                env=os.environ | {"TMPDIR": str(self.tmp)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                timeout=timeout_s,
            )
        except subprocess.TimeoutExpired as error:
            output = (error.output or b"").decode("utf-8", "replace")
            return CommandResult(output, -1, True, time.monotonic() - started)
        return CommandResult(done.stdout.decode("utf-8", "replace"), done.returncode, False, time.monotonic() - started)

    def put_tree(self, archive: Path) -> None:
        subprocess.run(["tar", "-xf", str(archive), "-C", str(self.workspace)], check=True)

    def put_file(self, path: str, content: bytes) -> None:
        target = self.workspace / self._localised(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)

    def read_file(self, path: str, *, limit: int = 5_000_000) -> bytes | None:
        target = self.workspace / self._localised(path)
        return target.read_bytes()[:limit] if target.is_file() and not target.is_symlink() else None

    def changed(self, files: Mapping[str, FileDigest]) -> list[str]:
        return [path for path, digest in files.items() if not self._holds(path, digest)]

    def _holds(self, path: str, digest: FileDigest) -> bool:
        content = self.read_file(path)
        return content is not None and hashlib.sha256(content).hexdigest() == digest.sha256

    def close(self) -> None:
        self.closed = True

    def _localised(self, text: str) -> str:
        # Python's own home may be below /tmp as well, and so are pytest's folders, which the workspace is one of.
        for place, mark in ((sys.prefix, "\1"), ("/tmp/", "\0/")):
            text = text.replace(place, mark)
        for mark, place in ((WORKSPACE, str(self.workspace)), ("\0", str(self.tmp)), ("\1", sys.prefix)):
            text = text.replace(mark, place)
        return text

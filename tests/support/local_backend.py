"""A backend whose sandboxes are plain folders, for stories about the workers with commands of the tests' own."""

import time
from pathlib import Path

from sandbox.types import Sandbox, SandboxSpec
from tests.support.forge import NoSandboxes
from tests.support.local_sandbox import LocalSandbox


class LocalBackend(NoSandboxes):
    """Each sandbox is a new folder below `folder`."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def open(self, spec: SandboxSpec) -> Sandbox:
        return LocalSandbox(self._folder / f"{time.monotonic_ns()}")

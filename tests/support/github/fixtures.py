"""The fixture `github`; a test's conftest takes it with `from tests.support.github.fixtures import github`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.github.server import GitHubServer


@pytest.fixture
def github(tmp_path: Path) -> Iterator[GitHubServer]:
    """A stateful GitHub; the test fails where a request to it is not as GitHub's description has it."""
    with GitHubServer(tmp_path / "github") as server:
        yield server

"""Where `push_fixes` lets a fix go: to the branch under repair, and never to the default branch."""

from types import SimpleNamespace
from typing import cast

import pytest

from store.repo_config import RepositoryConfig
from store.states import TaskKind
from store.tables import Task
from workers.forge_target import ForgeTarget
from workers.ports import BranchHead, Forge, RepositoryRef
from workers.targets import Source


@pytest.mark.parametrize(
    ("kind", "branch", "push_fixes", "pushed"),
    [
        (TaskKind.PULL_REQUEST, "feature", True, True),
        (TaskKind.CI_FAILURE, "feature", True, True),
        (TaskKind.CI_FAILURE, "feature", False, False),
        (TaskKind.CI_FAILURE, "main", True, False),
        (TaskKind.PULL_REQUEST, "main", True, False),
        (TaskKind.ISSUE, "feature", True, False),
    ],
)
def test_a_fix_goes_to_no_branch_that_is_not_under_repair_nor_to_the_default_branch(
    kind: TaskKind, branch: str, push_fixes: bool, pushed: bool
) -> None:
    forge = SimpleNamespace(default_branch=lambda _repository: BranchHead("main", "a" * 40))
    source = SimpleNamespace(base_ref=branch, config=RepositoryConfig(push_fixes=push_fixes))
    target = ForgeTarget(cast("Forge", forge), RepositoryRef(42, 7, "octo/tools"))
    task = cast("Task", SimpleNamespace(kind=kind))
    assert target._may_push_to_branch(task, cast("Source", source)) is pushed

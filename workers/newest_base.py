"""What the commit of a branch of its own stands on: the newest of the base branch where the patch merges cleanly."""

from collections.abc import Callable, Sequence

from sandbox.errors import CheckoutError, PatchError, RemoteUnavailable
from store.tables import Attempt, Task
from workers import history
from workers.run import Run
from workers.targets import Source, TargetMoved

Fetch = Callable[[Sequence[str]], None]
"""Brings refs and SHAs into the mirror."""

_STAYS = "The PR stands on the commit it was tested on."


def choose_parent(run: Run, source: Source, attempt: Attempt, fetch: Fetch) -> str:
    """Return the commit that the published one stands on, and keep it: whoever goes on makes the very same commit.

    Raises:
        TargetMoved: the base branch has the whole change already.
        RemoteUnavailable: the forge does not answer; nothing was chosen.
    """
    task = run.task()
    if (
        task.parent_sha
        and task.published_attempt_id == attempt.id
        and _still_stands(source, attempt.patch, task, fetch)
    ):
        return task.parent_sha
    parent, words = _newest(source, attempt.patch, fetch)
    with run.lease.transaction() as (session, task):
        task.parent_sha, task.published_attempt_id = parent, attempt.id
        session.add(task)
        if words:
            history.note(session, task, words, parent=parent)
    return parent


def tree_on(source: Source, patch: str, parent: str) -> str:
    """Return the SHA of the tree with the patch on top of the commit it was tested on, or of a later one.

    Raises:
        PatchError: the patch does not apply there.
    """
    tree = source.mirror.tree_with_patch(source.base_sha, patch)
    return tree if parent == source.base_sha else source.mirror.merged_tree(source.base_sha, tree, parent)


def _newest(source: Source, patch: str, fetch: Fetch) -> tuple[str, str]:
    """Return the newest commit where the patch has a place, and what there is to say of it."""
    tested = source.base_sha
    try:
        newest = _head(source, fetch)
    except RemoteUnavailable:
        raise
    except CheckoutError:
        return tested, f"The newest commit of the base branch could not be fetched. {_STAYS}"
    if newest == tested:
        return tested, ""
    try:
        if not source.mirror.is_ancestor(tested, newest):
            return tested, f"The base branch was rewritten while the model worked. {_STAYS}"
        is_there = tree_on(source, patch, newest) == source.mirror.tree_of(newest)
        count = source.mirror.commits_between(tested, newest)
    except PatchError as error:
        return tested, f"The base branch has moved on. {error} {_STAYS}"
    except CheckoutError:
        return tested, f"The base branch has moved on, and git could not merge the patch into it. {_STAYS}"
    if is_there:
        raise TargetMoved(
            f"The base branch has this change already, since {newest[:7]} at the latest: there is nothing to open a PR "
            "for."
        )
    later = f"{count} commit{'' if count == 1 else 's'} later"
    return newest, (
        f"Tested on {tested[:7]}. The branch stands on {newest[:7]}, {later}, where the patch applies without "
        "conflicts; the tests were not run again there."
    )


def _still_stands(source: Source, patch: str, task: Task, fetch: Fetch) -> bool:
    """Whether what was chosen before is a part of the base branch still: a person may have taken it away since."""
    if task.parent_sha == source.base_sha:
        return True
    try:
        if not source.mirror.is_ancestor(task.parent_sha, _head(source, fetch)):
            return False
        tree_on(source, patch, task.parent_sha)  # this machine's git may be an older one
    except RemoteUnavailable:
        raise
    except (CheckoutError, PatchError):
        return False
    return True


def _head(source: Source, fetch: Fetch) -> str:
    ref = f"refs/heads/{source.base_ref}"
    fetch([ref])
    return source.mirror.resolve(ref)

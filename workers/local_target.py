"""Tasks of `acrouter solve`: a local repository and a text, no GitHub. The answer is a patch or a branch."""

from pathlib import Path

from sandbox import setup_sharing
from sandbox.checkout import Mirror
from sandbox.remotes import Author, GitRemote
from store.states import TaskState
from workers.attempts import Attempted
from workers.context import Work, sandbox_limits
from workers.run import Run
from workers.targets import Source

_AUTHOR = Author("acrouter", "acrouter@localhost")


class LocalTarget:
    """A repository on this machine. The task's `base_ref` holds its path, its `branch` the branch to make, if any."""

    def fetch(self, run: Run) -> Source:
        task = run.task()
        path = Path(task.base_ref)
        room = sandbox_limits(run.runtime.settings).tree_bytes
        checkout = Mirror.from_local(path, run.runtime.mirrors_dir / f"local-{task.id}.git", largest_tree=room)
        if checkout.uncommitted:
            count = len(checkout.uncommitted)
            run.note(f"{count} file{'' if count == 1 else 's'} with uncommitted changes: not part of the task.")
        sha = run.update(base_sha=task.base_sha or checkout.head_sha).base_sha
        return Source(
            repository=path.name,
            title=task.title,
            text=task.text,
            base_ref=task.base_ref,
            base_sha=sha,
            mirror=checkout.mirror,
            # Any branch may be checked out there, a stranger's too.
            shares_setup_with=setup_sharing.of_tree("a local repository", checkout.mirror.tree_of(sha)),
        )

    def adopt(self, run: Run) -> bool:  # noqa: ARG002  (a local task is worked on by one process alone)
        return False

    def publish(self, run: Run, work: Work, best: Attempted) -> None:
        task = run.task()
        run.update(published_attempt_id=best.attempt.id)
        if not task.branch:
            run.advance(TaskState.PUBLISHED, f"{best.attempt.model}'s patch is ready.")
            return
        run.advance(TaskState.PUBLISHING, f"Making the branch {task.branch}.")
        mirror = work.source.mirror
        tree = mirror.tree_with_patch(work.source.base_sha, best.attempt.patch)
        when = best.attempt.finished_at or best.attempt.started_at
        commit = mirror.commit(tree, work.source.base_sha, f"{task.title}\n", _AUTHOR, when)
        mirror.push(GitRemote(task.base_ref), commit, task.branch, expected=None)
        run.update(head_sha=commit)
        run.advance(TaskState.PUBLISHED, f"The branch {task.branch} holds {best.attempt.model}'s patch.")

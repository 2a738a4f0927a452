"""Tasks of `acrouter solve`: a local repository and a text, no GitHub. The answer is a patch or a branch."""

from pathlib import Path

from sandbox.checkout import Mirror

from sandbox.types import Author
from store.states import TaskState
from workers.attempts import Attempted
from workers.context import Work
from workers.run import Run
from workers.targets import Source

_AUTHOR = Author("acrouter", "acrouter@localhost")


class LocalTarget:
    """A repository on this machine. The task's `base_ref` holds its path, its `branch` the branch to make, if any."""

    def fetch(self, run: Run) -> Source:
        task = run.task()
        path = Path(task.base_ref)
        mirror = Mirror.from_local(path, run.runtime.mirrors_dir / f"local-{task.id}.git")
        sha = mirror.resolve(task.base_sha)
        return Source(
            repository=path.name,
            title=task.title,
            text=task.text,
            base_ref=task.base_ref,
            base_sha=sha,
            mirror=mirror,
        )

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
        mirror.push_local(Path(task.base_ref), commit, task.branch)
        run.update(head_sha=commit)
        run.advance(TaskState.PUBLISHED, f"The branch {task.branch} holds {best.attempt.model}'s patch.")

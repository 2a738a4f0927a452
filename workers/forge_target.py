"""Tasks from GitHub: reads their words and their commit, and hands the answer in as a PR."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit

from sandbox import setup_sharing
from sandbox.checkout import Mirror
from sandbox.errors import PushError
from sandbox.remotes import GitRemote
from store.repo_config import CONFIG_FILE, RepositoryConfig
from store.repo_yaml import RepositoryConfigurationError
from store.scrub import scrub
from store.states import OutcomeKind, TaskKind, TaskState
from store.tables import Task
from templates import render
from templates.escape import usd
from workers import outcomes
from workers.attempts import Attempted
from workers.configuration import in_force
from workers.context import Work, sandbox_limits
from workers.errors import ForgeError
from workers.history import record
from workers.newest_base import choose_parent, tree_on
from workers.ports import Forge, PullRequestInfo, RepositoryRef
from workers.run import Run
from workers.target_words import Words, branch_now, open_issue, open_pull_request, read_words
from workers.targets import Refusal, Source, TargetMoved
from workers.views import task_view

BRANCH_PREFIX = "acrouter/"
"""Of the branches that acrouter makes: CI on them is an outcome and starts nothing."""
_TEAM = "team:"


@dataclass(frozen=True)
class ForgeTarget:
    """An issue, a PR or a failed CI run at the forge."""

    forge: Forge
    repository: RepositoryRef

    def fetch(self, run: Run) -> Source:
        task = run.task()
        config = self._config(run)
        words = read_words(self.forge, self.repository, task)
        settings = run.runtime.settings
        mirror = Mirror(
            run.runtime.mirrors_dir / f"{self.repository.id}.git",
            largest_tree=sandbox_limits(settings).tree_bytes,
            largest_pack=settings.cache_bytes,
        )
        if not mirror.has(words.base_sha):
            self._fetch(run, mirror, words.refs)
        missing = self._fetch_parts(run, mirror, words.base_sha, config)
        budget = min(task.budget_usd, config.budget_usd or task.budget_usd)
        if budget < task.budget_usd:
            run.note(f"Its budget is {usd(budget)} in place of {usd(task.budget_usd)}, by budget_usd in {CONFIG_FILE}.")
        # A secret that somebody pasted goes to no model and into no memory; and Postgres takes no NUL.
        title, text, asked = (scrub(said.replace("\x00", "")) for said in (words.title, words.text, words.asked))
        run.update(title=title, text=asked, base_ref=words.base_ref, base_sha=words.base_sha, budget_usd=budget)
        return Source(
            self.repository.full_name,
            title,
            text,
            words.base_ref,
            words.base_sha,
            mirror,
            self._shares_setup_with(run, words, mirror),
            words.link,
            config,
            missing,
            is_fork=words.is_fork,
        )

    def adopt(self, run: Run) -> bool:
        task = run.task()
        if not task.head_sha:  # nothing was pushed
            return False
        pull = self._pull_of(task)
        if pull is None:
            return False
        self._record(run, pull)
        return True

    def publish(self, run: Run, work: Work, best: Attempted) -> None:
        """Hand the patch in as a PR from a branch of its own, or as the repository's configuration says.

        Each step looks before it writes. A branch of its own stands on the newest commit of the base branch where the
        patch has a place there; the branch under repair gets the patch on the commit that was tested or not at all.
        """
        task = run.task()
        assert best.result is not None
        assert best.attempt.id is not None
        stands = self._stands(run, task, work, best)
        if work.source.is_fork:
            run.update(published_attempt_id=best.attempt.id)
            run.advance(TaskState.PUBLISHED, "The patch is offered below: acrouter pushes nothing to or from a fork.")
            return
        if stands and best.verified and self._may_push_to_branch(task, work.source):
            if self._push_to_branch(run, work, best):
                return
            task = run.update(branch="")  # somebody was quicker: a PR to the branch instead
        mirror = work.source.mirror
        remote = self.forge.git_remote(self.repository, write=True)  # minted now: an older token may be dead
        fetch = partial(mirror.fetch, remote, timeout_s=run.runtime.settings.setup_timeout_s)
        parent = choose_parent(run, work.source, best.attempt, fetch)  # before the commit, whose message tells of it
        commit = self._commit(run, work, best, parent)
        branch = _free_branch(mirror, remote, commit, task.branch or branch_name(task))
        run.update(branch=branch)
        run.advance(TaskState.PUBLISHING, f"Opening a PR from {branch}.", branch=branch)
        run.check()
        if mirror.remote_head(remote, branch) != commit:
            mirror.push(remote, commit, branch, expected=None)
        run.update(head_sha=commit)
        run.check()
        view = task_view(run.runtime.database, run.task_id, run.runtime.settings, run.runtime.pool)
        pull = self.forge.create_pull_request(
            self.repository,
            head_ref=branch,
            base_ref=work.source.base_ref,
            title=render("pulls/title.txt.j2", view=view).strip(),
            body=render("pulls/body.md.j2", view=view),
            draft=work.source.config.draft or not best.verified,
        )
        self._record(run, pull)
        self._ask_for_reviews(run, work.source.config, pull)

    def _pull_of(self, task: Task) -> PullRequestInfo | None:
        """Return the PR that the pushed commit is in, open or not.

        A branch under repair may have had others, which were merged or closed without it.
        """
        pull = self.forge.find_pull_request(self.repository, task.branch)
        if pull is None or pull.state == "open" or task.branch.startswith(BRANCH_PREFIX):
            return pull
        return pull if pull.head_sha == task.head_sha else None

    def _record(self, run: Run, pull: PullRequestInfo) -> None:
        with run.lease.transaction() as (session, task):
            task.pr_number = pull.number
            task.pr_url = pull.url
            # GitHub told of its end, or tells now: either may be the first to know.
            told = outcomes.kinds(session, run.task_id)
            state, words = published_state(
                pull.number,
                merged=pull.merged or OutcomeKind.MERGED in told,
                closed=pull.state == "closed" or OutcomeKind.CLOSED in told,
            )
            record(session, task, state, words, pr=pull.number, url=pull.url)
        if pull.state == "closed":  # its webhook may have come before the PR's number was known
            outcomes.record_end(run.runtime.database, run.task_id, pull)

    def _fetch(self, run: Run, mirror: Mirror, refs: Sequence[str]) -> None:
        remote = self.forge.git_remote(self.repository, write=False)
        mirror.fetch(remote, refs, timeout_s=run.runtime.settings.setup_timeout_s)

    def _fetch_parts(self, run: Run, mirror: Mirror, sha: str, config: RepositoryConfig) -> Sequence[str]:
        """Fetch what is no part of the commit itself, and return what is missing, as sentences."""
        missing: list[str] = []
        timeout_s = run.runtime.settings.setup_timeout_s
        for wanted, fetch in ((config.submodules, mirror.fetch_submodules), (config.lfs, mirror.fetch_lfs)):
            if wanted:
                missing += fetch(self.forge.git_remote(self.repository, write=False), sha, timeout_s=timeout_s)
        return missing

    def _shares_setup_with(self, run: Run, words: Words, mirror: Mirror) -> str:
        """Names can be given up and taken by others, and each forge counts from 1: its host and the number stay."""
        repository = f"{urlsplit(run.runtime.settings.github_api_url).hostname} {self.repository.id}"
        if words.on_default_branch:
            return setup_sharing.of_default_branch(repository)
        return setup_sharing.of_tree(repository, mirror.tree_of(words.base_sha))

    def _stands(self, run: Run, task: Task, work: Work, best: Attempted) -> bool:
        """Whether the branch under repair is where it was pinned, our own commit aside; what was added to it is told.

        Raises:
            TargetClosed: the target was closed or its branch deleted, without our being told.
            TargetMoved: the commit that the work is about is gone from it.
        """
        source = work.source
        head = current_head(self.forge, self.repository, task)
        if head is None or head == source.base_sha:
            return True
        if task.branch == source.base_ref and head == self._commit(run, work, best, source.base_sha):
            return True  # an earlier worker pushed it there, and ended before it could say so
        refs = [f"refs/pull/{task.target_number}/head"] if source.is_fork else [f"refs/heads/{source.base_ref}"]
        self._fetch(run, source.mirror, [*refs, head])
        if not source.mirror.is_ancestor(source.base_sha, head):
            raise TargetMoved(
                "The branch was rewritten while the model worked (a force-push): the patch belongs to commits that are "
                "gone from it. `/route retry` works on the branch as it is now."
            )
        run.note("Commits were added to the branch while the model worked. The patch was tested without them.")
        return False

    def _may_push_to_branch(self, task: Task, source: Source) -> bool:
        if not source.config.push_fixes or task.kind is TaskKind.ISSUE:
            return False
        return source.base_ref != self.forge.default_branch(self.repository).name

    def _push_to_branch(self, run: Run, work: Work, best: Attempted) -> bool:
        """Add the patch to the branch under repair. Returns whether nobody else was quicker; nothing is overwritten."""
        branch = work.source.base_ref
        run.update(branch=branch, published_attempt_id=best.attempt.id)
        run.advance(TaskState.PUBLISHING, f"Pushing to {branch}.", branch=branch)
        commit = self._commit(run, work, best, work.source.base_sha)
        run.check()
        remote = self.forge.git_remote(self.repository, write=True)
        try:
            work.source.mirror.push(remote, commit, branch, expected=work.source.base_sha)
        except PushError as error:
            run.note(f"{error} A PR to the branch is opened instead.")
            return False
        pull = self._pull_of(run.update(head_sha=commit))
        if pull is not None:
            self._record(run, pull)
        else:
            run.advance(TaskState.PUBLISHED, f"The fix is on {branch}.", branch=branch)
        return True

    def _ask_for_reviews(self, run: Run, config: RepositoryConfig, pull: PullRequestInfo) -> None:
        """A reviewer who may not review here is no reason to fail: the PR is open."""
        people = [name for name in config.reviewers if not name.startswith(_TEAM)]
        teams = [name.removeprefix(_TEAM) for name in config.reviewers if name.startswith(_TEAM)]
        if not (people or teams) or pull.state == "closed":
            return
        try:
            self.forge.request_reviews(self.repository, pull.number, people, teams)
        except ForgeError as error:
            run.note(f"The reviewers of {CONFIG_FILE} could not be asked: {error}")

    def _commit(self, run: Run, work: Work, best: Attempted, parent: str) -> str:
        """The same attempt gives the same commit on the same parent, whoever makes it."""
        tree = tree_on(work.source, best.attempt.patch, parent)
        when = best.attempt.finished_at or best.attempt.started_at
        view = task_view(run.runtime.database, run.task_id, run.runtime.settings, run.runtime.pool)
        message = render("pulls/commit.txt.j2", view=view)
        return work.source.mirror.commit(tree, parent, message, self.forge.author(self.repository), when)

    def _config(self, run: Run) -> RepositoryConfig:
        try:
            rules = in_force(run.runtime.database, self.forge, self.repository, run.runtime.settings)
        except RepositoryConfigurationError as error:
            raise Refusal(f"{CONFIG_FILE} on the default branch has a mistake:\n{error}") from error
        if rules.mistakes:
            told = "\n".join(map(str, rules.mistakes))
            run.note(f"{CONFIG_FILE} has a mistake; the last valid one stays in force.\n{told}")
        return rules.config


def current_head(forge: Forge, repository: RepositoryRef, task: Task) -> str | None:
    """Return where the branch under repair is now; None for an issue, which has none.

    Raises:
        TargetClosed: the issue or PR was closed, or the branch deleted.
    """
    match task.kind:
        case TaskKind.ISSUE:
            assert task.target_number is not None
            open_issue(forge, repository, task.target_number)
            return None
        case TaskKind.PULL_REQUEST:
            assert task.target_number is not None
            return open_pull_request(forge, repository, task.target_number).head_sha
        case _:
            if task.target_number is not None:
                return open_pull_request(forge, repository, task.target_number).head_sha
            return branch_now(forge, repository, task.base_ref).sha


def _free_branch(mirror: Mirror, remote: GitRemote, commit: str, wanted: str) -> str:
    """Return a name that is free, or holds this very commit already: somebody else's branch is left alone.

    Raises:
        PushError: the names that could be tried are all taken.
    """
    for name in (wanted, *(f"{wanted}-{number}" for number in range(2, 6))):
        if mirror.remote_head(remote, name) in (None, commit):
            return name
    raise PushError(f"The branch {wanted} is there already, with commits that are not acrouter's.")


def branch_name(task: Task) -> str:
    """Return the name of a task's own branch: no two tasks share one."""
    about = f"{task.target_number}" if task.target_number is not None else "ci"
    return f"{BRANCH_PREFIX}{task.kind.value.replace('_', '-')}-{about}-task-{task.id}"


def published_state(number: int, *, merged: bool, closed: bool) -> tuple[TaskState, str]:
    """Return the state that a PR stands for: it may have been merged or closed while we were away."""
    if merged:
        return TaskState.MERGED, f"PR {number} was merged."
    if closed:
        return TaskState.CLOSED, f"PR {number} was closed without a merge."
    return TaskState.PUBLISHED, f"PR {number} is open."

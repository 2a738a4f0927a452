"""What people do to a PR while a model works on it: acrouter stops, or goes on and says so, and overwrites nothing."""

import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlmodel import col, select

from bot.demo.hub import pulls
from bot.github import GitHubForge
from sandbox.errors import RemoteRefused, RemoteUnavailable
from sandbox.remotes import GitRemote
from sandbox.setup_sharing import of_default_branch, of_tree
from store.states import TaskState
from store.tables import Outcome, Task
from store.types import utc_now
from tests.support.quick_mirror import LocalMirror
from tests.support.whole_run import REPOSITORY, WholeRun
from workers.errors import ForgeError, ForgeTemporary, TargetGone
from workers.forge_target import ForgeTarget
from workers.pipeline import work_on
from workers.ports import RepositoryRef
from workers.run import Run
from workers.targets import Source


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WholeRun]:
    made = WholeRun(tmp_path_factory.mktemp("mid-run"), git="path")
    with made.connected():
        yield made
    made.close()


@pytest.fixture
def sources(monkeypatch: pytest.MonkeyPatch) -> list[Source]:
    """What the tasks of the test were told, in their order."""
    told: list[Source] = []
    fetch = ForgeTarget.fetch

    def noted(self: ForgeTarget, run: Run) -> Source:
        told.append(fetch(self, run))
        return told[-1]

    monkeypatch.setattr(ForgeTarget, "fetch", noted)
    return told


class PullStory:
    """A PR from a branch of the repository, on which a maintainer has just said `/route fix`."""

    def __init__(self, runs: WholeRun, branch: str, config: str = "") -> None:
        self.runs, self.branch = runs, branch
        runs.hub.push("main", {".acrouter.yml": config or f"# {branch}\n"})
        self.pinned = runs.hub.push(branch, {f"{branch}.txt": "a\n"})
        self.number = runs.hub.open_pull_request("Feature", head=branch)
        runs.hub.comment(self.number, "/route fix")
        runs.hear()

    @property
    def task(self) -> Task:
        with self.runs.database.session() as session:
            return session.exec(
                select(Task).where(Task.target_number == self.number).order_by(col(Task.id).desc())
            ).first() or pytest.fail("no task was started")

    def head(self) -> str:
        return self.runs.hub.branches()[self.branch]

    def parents(self) -> Sequence[str]:
        """Of the commit that acrouter made."""
        return self.runs.hub._repository("").bare.commit(self.task.head_sha).parents

    def words(self) -> str:
        return "\n".join(comment["body"] for comment in self.runs.hub.comments(self.number)).replace("\\", "")

    def force_push(self) -> str:
        sha = self.runs.hub.push(f"{self.branch}-again", {"other.txt": "b\n"})
        self._move(sha)
        return sha

    def delete(self) -> None:
        self.runs.hub.close(self.number)

    def tell_of_move(self, before: str, after: str) -> None:
        hub = self.runs.hub._hub
        moved = {self.branch: (before, after)}
        pulls.branches_moved(hub, self.runs.hub._repository(""), moved, hub.state.user("maintainer"))

    def _move(self, sha: str) -> None:
        before = self.head()
        self.runs.hub._repository("").bare.set_branch(self.branch, sha)
        self.tell_of_move(before, sha)


def test_a_fix_of_a_pr_is_a_pr_to_its_branch(runs: WholeRun) -> None:
    story = PullStory(runs, "plain")
    runs.settle()
    assert story.task.state is TaskState.PUBLISHED
    assert story.task.text == "", "what the PR said, without what was read beside it: that is read at each try"
    assert story.head() == story.pinned
    opened = next(pull for pull in runs.hub.pull_requests() if pull["number"] == story.task.pr_number)
    assert opened["base"]["ref"] == "plain"


def test_foreign_commits_stay_and_are_told(runs: WholeRun) -> None:
    story = PullStory(runs, "added")
    later = runs.hub.push("added", {"more.txt": "x\n"}, by="contributor")
    runs.settle()
    assert story.task.state is TaskState.PUBLISHED
    assert story.head() == later
    assert "Commits were added to the branch while the model worked" in story.words()
    assert story.parents() == (later,), "the PR to the branch stands on them"


def test_a_force_push_stops_the_work_and_says_so(runs: WholeRun) -> None:
    story = PullStory(runs, "forced")
    rewritten = story.force_push()
    runs.settle()
    assert story.task.state is TaskState.STOPPED
    assert story.head() == rewritten
    assert "a force-push" in story.words()
    assert "/route retry" in story.words()


def test_a_closed_pr_stops_the_work_even_if_nobody_told_us(runs: WholeRun) -> None:
    story = PullStory(runs, "closed")
    runs.hub.close(story.number)
    runs._heard = len(runs.hub.deliveries)  # the webhook is lost
    runs.settle()
    assert story.task.state is TaskState.STOPPED
    assert f"PR {story.number} was closed" in story.words()


def test_push_fixes_adds_a_commit_to_the_prs_own_branch(runs: WholeRun) -> None:
    story = PullStory(runs, "own", "push_fixes: true\n")
    runs.settle()
    task = story.task
    assert (task.state, task.pr_number, task.branch) == (TaskState.PUBLISHED, story.number, "own")
    assert story.head() == task.head_sha != story.pinned
    assert story.parents() == (story.pinned,)


def test_push_fixes_overwrites_no_commit_of_a_person(runs: WholeRun) -> None:
    story = PullStory(runs, "busy", "push_fixes: true\n")
    later = runs.hub.push("busy", {"more.txt": "x\n"}, by="contributor")
    runs.settle()
    assert story.head() == later
    assert story.task.pr_number != story.number
    assert story.task.state is TaskState.PUBLISHED
    assert story.parents() == (later,)


def test_a_fix_on_a_branch_is_not_the_pr_that_the_branch_had_before(runs: WholeRun) -> None:
    """A branch that lives on is merged now and then: what became of those PRs was decided before the fix."""
    hub = runs.hub
    hub.push("main", {".acrouter.yml": "on_ci_failure: true\npush_fixes: true\nrerun_flakes: false\n"})
    hub.push("develop", {"first.txt": "a\n"})
    hub.merge(hub.open_pull_request("The first release", head="develop"))
    sha = hub.push("develop", {"second.txt": "b\n"})
    hub.fail_ci(sha, "develop", jobs=[("test", "FAILED tests/test_cart.py::test_total")])
    runs.settle()
    with runs.database.session() as session:
        task = session.exec(select(Task).where(Task.base_sha == sha)).one()
        outcomes = session.exec(select(Outcome.kind).where(Outcome.task_id == task.id)).all()
    assert hub.branches()["develop"] == task.head_sha != sha
    assert (task.state, task.pr_number, task.reason) == (TaskState.PUBLISHED, None, "The fix is on develop.")
    assert list(outcomes) == []


def test_a_push_whose_answer_was_lost_is_found_and_not_handed_in_twice(
    runs: WholeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = PullStory(runs, "unheard", "push_fixes: true\n")
    push = LocalMirror.push
    lost: list[str] = []

    def lose_the_answer(self: LocalMirror, remote: GitRemote, sha: str, branch: str, **options: Any) -> None:
        push(self, remote, sha, branch, **options)
        if not lost:
            lost.append(sha)
            story.tell_of_move(story.pinned, sha)
            raise RemoteUnavailable("The connection ended before GitHub could answer.")

    monkeypatch.setattr(LocalMirror, "push", lose_the_answer)
    opened = len(runs.hub.pull_requests())
    runs.settle()
    task = story.task
    assert (task.state, task.pr_number, task.head_sha) == (TaskState.PUBLISHED, story.number, lost[0])
    assert story.head() == lost[0]
    assert len(runs.hub.pull_requests()) == opened
    assert "Commits were added" not in story.words()


@pytest.mark.parametrize(
    ("refusal", "state"),
    [(ForgeError("GitHub said no to that."), TaskState.FAILED), (TargetGone("It is gone."), TaskState.STOPPED)],
)
def test_a_refusal_that_lasts_is_believed_at_the_third_try(
    runs: WholeRun, monkeypatch: pytest.MonkeyPatch, refusal: ForgeError, state: TaskState
) -> None:
    asked = []

    def refuse(_self: GitHubForge, repository: RepositoryRef, number: int, **_words: Any) -> str:
        asked.append(number)
        raise refusal

    monkeypatch.setattr(GitHubForge, "pull_request_discussion", refuse)
    story = PullStory(runs, f"refused-{state.value}")
    runs.settle()
    assert (story.task.state, story.task.tries, len(asked)) == (state, 3, 3)
    assert str(refusal) in story.words()


def test_a_repository_that_git_may_not_fetch_is_given_up_at_the_third_try(
    runs: WholeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def refuse(_self: LocalMirror, remote: GitRemote, refs: Sequence[str], **_options: Any) -> None:
        asked.append(remote.url)
        raise RemoteRefused("The repository cannot be fetched: The requested URL returned error: 403")

    monkeypatch.setattr(LocalMirror, "fetch", refuse)
    story = PullStory(runs, "archived")
    runs.settle()
    assert (story.task.state, story.task.tries, len(asked)) == (TaskState.FAILED, 3, 3)
    assert "returned error: 403" in story.words()


def test_a_github_that_is_away_is_waited_for_up_to_a_day(runs: WholeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(_self: GitHubForge, repository: RepositoryRef, number: int, **_words: Any) -> str:
        raise ForgeTemporary("GitHub is away.")

    monkeypatch.setattr(GitHubForge, "pull_request_discussion", away)
    story = PullStory(runs, "waiting")
    pauses, tries = [], set()
    while (task := story.task).state is TaskState.QUEUED:
        assert task.id is not None
        began = utc_now()
        work_on(runs.runtime, task.id)
        if (until := story.task.not_before) is not None:
            pauses.append(round((until - began).total_seconds() / 30))
            tries.add(story.task.tries)
            runs.pass_hours(story.task, (until - began).total_seconds() / 3600)
    assert pauses[0] == 1, "half a minute at first"
    assert pauses[:-1] == sorted(pauses[:-1]), "longer each time"
    assert max(pauses) == 60, "half an hour at most"
    assert sum(pauses) == pytest.approx(24 * 120, rel=0.01), "a day in all"
    assert tries == {0}, "the task is not to blame"
    assert task.state is TaskState.FAILED
    assert "Given up after waiting since" in task.reason
    assert "GitHub is away." in task.reason


def test_a_new_wait_begins_anew_once_github_has_answered(runs: WholeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(_self: GitHubForge, repository: RepositoryRef, number: int, **_words: Any) -> str:
        raise ForgeTemporary("GitHub is away.")

    story = PullStory(runs, "back-again")
    assert story.task.id is not None
    with monkeypatch.context() as outage:
        outage.setattr(GitHubForge, "pull_request_discussion", away)
        work_on(runs.runtime, story.task.id)
    assert story.task.waiting_since is not None
    runs.settle()
    assert story.task.state is TaskState.PUBLISHED
    assert story.task.waiting_since is None


def test_a_forks_pr_is_read_by_its_pull_ref_and_answered_with_a_patch(
    runs: WholeRun, monkeypatch: pytest.MonkeyPatch, sources: list[Source]
) -> None:
    from_fork = GitHubForge.pull_request

    def as_fork(self: GitHubForge, *arguments: Any) -> Any:
        return replace(from_fork(self, *arguments), head_repository="stranger/shop")

    monkeypatch.setattr(GitHubForge, "pull_request", as_fork)
    story = PullStory(runs, "theirs")
    bare = runs.hub._repository("").bare
    subprocess.run(["git", "update-ref", f"refs/pull/{story.number}/head", story.pinned], cwd=bare.path, check=True)
    subprocess.run(["git", "update-ref", "-d", "refs/heads/theirs"], cwd=bare.path, check=True)
    before = runs.hub.branches()
    runs.settle()
    assert story.task.state is TaskState.PUBLISHED
    assert story.task.pr_number is None
    assert runs.hub.branches() == before, "nothing of a fork is pushed into the repository"
    assert "+    return sum(prices)" in story.words()
    assert "git apply" in story.words()
    assert (Path(runs.hub._folder.name) / f"{REPOSITORY}.git").is_dir()
    (source,) = sources
    tree = source.mirror.tree_of(story.pinned)
    assert source.shares_setup_with == of_tree(f"localhost {story.task.repository_id}", tree)


def test_only_the_default_branchs_code_shares_a_set_up_with_others(runs: WholeRun, sources: list[Source]) -> None:
    branch = PullStory(runs, "sharing")
    runs.settle()
    runs.hub.label(runs.hub.open_issue("The total is wrong", "It leaves the first price out."), "acrouter")
    runs.hear()
    runs.settle()
    of_branch, of_issue = sources
    repository = f"localhost {branch.task.repository_id}"
    assert of_branch.shares_setup_with == of_tree(repository, of_branch.mirror.tree_of(branch.pinned))
    assert of_issue.shares_setup_with == of_default_branch(repository)


def test_a_default_branch_of_another_name_is_where_the_pr_goes(tmp_path: Path) -> None:
    made = WholeRun(tmp_path, default_branch="trunk")
    try:
        assert made.run().summary() == "closed"
        assert [pull["base"]["ref"] for pull in made.hub.pull_requests()] == ["trunk"]
    finally:
        made.close()


def test_a_branch_of_that_name_that_is_somebody_elses_is_left_alone(runs: WholeRun) -> None:
    story = PullStory(runs, "named")
    taken = f"acrouter/pull-request-{story.number}-task-{story.task.id}"
    theirs = runs.hub.push(taken, {"mine.txt": "mine\n"}, by="contributor")
    runs.settle()
    assert story.task.state is TaskState.PUBLISHED
    assert story.task.branch == f"{taken}-2"
    assert runs.hub.branches()[taken] == theirs

"""The base branch goes on while a model works: the PR stands on its newest commit where the patch merges."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlmodel import select

from sandbox.errors import CheckoutError, RemoteRefused, RemoteUnavailable
from sandbox.remotes import GitRemote
from store.database import Database
from store.states import TaskState
from store.tables import Attempt, Task
from tests.support.quick_mirror import LocalMirror
from tests.support.whole_run import WholeRun
from workers.pipeline import work_on

BROKEN = "def total(prices):\n    return sum(prices[1:])\n"
FIXED = "def total(prices):\n    return sum(prices)\n"


class Killed(BaseException):
    """The worker's process ends here, whatever it would have done next."""


class IssueStory:
    """A labelled issue whose task a worker has pinned to a commit of main."""

    def __init__(self, runs: WholeRun) -> None:
        self.runs = runs
        self.pinned = runs.hub.push("main", {"README.md": "A shop.\n"})
        self.number = runs.hub.open_issue("The total is wrong", "It leaves the first price out.")
        runs.hub.label(self.number, "acrouter")
        runs.hear()
        with runs.database.session() as session:
            session.add(session.get_one(Task, self.task.id).sqlmodel_update({"base_sha": self.pinned}))

    @property
    def task(self) -> Task:
        with self.runs.database.session() as session:
            return session.exec(select(Task)).one()

    @property
    def body(self) -> str:
        [pull] = self.runs.hub.pull_requests()
        return str(pull["body"]).replace("\\", "")

    @property
    def words(self) -> str:
        [comment] = self.runs.hub.comments(self.number)
        return str(comment["body"]).replace("\\", "")

    @property
    def own_branches(self) -> dict[str, str]:
        return {name: sha for name, sha in self.runs.hub.branches().items() if name.startswith("acrouter/")}

    def main_goes_on(self, files: Mapping[str, str | None]) -> str:
        return self.runs.hub.push("main", files, by="contributor")

    def give_attempt(self) -> int:
        """A model has made the patch, and it was verified. Returns the attempt's id."""
        assert self.task.id is not None
        self.runs._give_attempt(self.task.id)
        with self.runs.database.session() as session:
            attempt = session.exec(select(Attempt)).one()
        assert attempt.id is not None
        return attempt.id

    def parent(self) -> str:
        """Of the commit that the PR shows."""
        [parent] = self.bare.commit(self.task.head_sha).parents
        return str(parent)

    def content(self, path: str) -> str:
        content = self.bare.file(self.task.head_sha, path)
        assert content is not None
        return str(content.decode())

    def changed(self) -> list[str]:
        """Files that the PR's commit changes."""
        return [file.path for file in self.bare.changed_files(self.parent(), self.task.head_sha)]

    def is_published_on(self, parent: str) -> None:
        assert self.task.state is TaskState.PUBLISHED, self.task.reason
        assert self.parent() == self.task.parent_sha == parent
        assert self.own_branches == {self.task.branch: self.task.head_sha}
        assert len(self.runs.hub.pull_requests()) == 1
        assert self.changed() == ["cart.py"]

    @property
    def bare(self) -> Any:
        return self.runs.hub._repository("").bare


@pytest.fixture
def runs(tmp_path: Path, database: Database) -> Iterator[WholeRun]:
    made = WholeRun(tmp_path, git="path", database=database)
    with made.connected():
        yield made
    made.close()


@pytest.fixture
def story(runs: WholeRun) -> IssueStory:
    return IssueStory(runs)


def test_a_base_that_stood_still_needs_no_words(story: IssueStory) -> None:
    story.runs.settle()
    story.is_published_on(story.pinned)
    assert "**Base:**" not in story.body


def test_the_pr_stands_on_the_newest_commit_and_says_where_it_was_tested(story: IssueStory) -> None:
    story.main_goes_on({"other.py": "x = 1\n"})
    newest = story.main_goes_on({"cart.py": f'"""A cart."""\n\n\n\n\n\n{BROKEN}'})
    story.runs.settle()
    story.is_published_on(newest)
    assert story.content("cart.py") == f'"""A cart."""\n\n\n\n\n\n{FIXED}'
    words = (
        f"Tested on {story.pinned[:7]}. The branch stands on {newest[:7]}, 2 commits later, where the patch applies "
        "without conflicts; the tests were not run again there."
    )
    assert words in story.body
    assert words in story.words
    message = story.bare.commit(story.task.head_sha).message
    assert f"on {story.pinned[:7]}; this commit stands on a later one." in message


def test_a_patch_that_conflicts_stays_where_it_was_tested(story: IssueStory) -> None:
    story.main_goes_on({"cart.py": BROKEN.replace("sum(prices[1:])", "fsum(prices[1:])")})
    story.runs.settle()
    story.is_published_on(story.pinned)
    words = "The base branch has moved on. The patch conflicts with it. The PR stands on the commit it was tested on."
    assert words in story.body
    assert words in story.words


def test_a_file_that_was_moved_to_a_place_it_may_not_touch_keeps_the_patch_where_it_was_tested(
    story: IssueStory,
) -> None:
    story.main_goes_on({"cart.py": None, ".github/workflows/cart.py": BROKEN})
    story.runs.settle()
    story.is_published_on(story.pinned)


def test_a_change_that_somebody_else_has_made_gets_no_pr(story: IssueStory) -> None:
    newest = story.main_goes_on({"cart.py": FIXED, "other.py": "x = 1\n"})
    story.runs.settle()
    assert story.task.state is TaskState.STOPPED
    assert f"The base branch has this change already, since {newest[:7]} at the latest" in story.words
    assert story.runs.hub.pull_requests() == []
    assert story.own_branches == {}


def test_a_base_that_was_rewritten_keeps_the_patch_where_it_was_tested(story: IssueStory) -> None:
    [older] = story.bare.commit(story.pinned).parents
    story.bare.set_branch("main", older)
    story.main_goes_on({"other.py": "x = 1\n"})
    story.runs.settle()
    assert story.parent() == story.pinned
    assert "The base branch was rewritten while the model worked." in story.words


def test_a_worker_killed_before_its_push_is_followed_by_one_that_makes_the_very_same_commit(
    story: IssueStory, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = story.main_goes_on({"other.py": "x = 1\n"})
    made = _killed_at_the_push(story, monkeypatch, pushes=False)
    assert (story.task.parent_sha, story.task.head_sha, story.own_branches) == (chosen, "", {})
    story.main_goes_on({"more.py": "y = 2\n"})
    story.runs.settle()
    story.is_published_on(chosen)
    assert story.task.head_sha == made[0]
    assert f"stands on {chosen[:7]}, 1 commit later" in story.body


def test_a_worker_killed_after_its_push_leaves_one_branch_though_the_base_moves_again(
    story: IssueStory, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = story.main_goes_on({"other.py": "x = 1\n"})
    made = _killed_at_the_push(story, monkeypatch, pushes=True)
    assert (list(story.own_branches.values()), story.task.head_sha) == (made, "")
    story.main_goes_on({"cart.py": FIXED})
    story.runs.settle()
    story.is_published_on(chosen)
    assert story.task.head_sha == made[0]


def test_a_second_worker_needs_no_mirror_of_the_first(story: IssueStory, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = story.main_goes_on({"other.py": "x = 1\n"})
    made = _killed_at_the_push(story, monkeypatch, pushes=True)
    story.runs.runtime.mirrors_dir.rename(story.runs.runtime.mirrors_dir.with_name("of-another-machine"))
    story.runs.settle()
    story.is_published_on(chosen)
    assert story.task.head_sha == made[0]


def test_a_chosen_commit_that_is_gone_is_chosen_anew(story: IssueStory) -> None:
    attempt_id = story.give_attempt()
    with story.runs.database.session() as session:
        row = session.get_one(Task, story.task.id)
        session.add(row.sqlmodel_update({"parent_sha": "d" * 40, "published_attempt_id": attempt_id}))
    newest = story.main_goes_on({"other.py": "x = 1\n"})
    story.runs.settle()
    story.is_published_on(newest)


def test_a_chosen_commit_that_a_person_took_away_since_is_not_brought_back(
    story: IssueStory, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaked = story.main_goes_on({"secret.txt": "leaked by mistake\n"})
    _killed_at_the_push(story, monkeypatch, pushes=False)
    assert story.task.parent_sha == leaked
    story.bare.set_branch("main", story.pinned)  # a force-push
    newest = story.main_goes_on({"other.py": "x = 1\n"})
    story.runs.settle()
    story.is_published_on(newest)
    assert story.bare.file(story.task.head_sha, "secret.txt") is None


def test_a_worker_whose_git_cannot_merge_what_another_has_chosen_publishes_all_the_same(
    story: IssueStory, monkeypatch: pytest.MonkeyPatch
) -> None:
    story.main_goes_on({"other.py": "x = 1\n"})
    _killed_at_the_push(story, monkeypatch, pushes=False)
    _git_fails(monkeypatch, "merged_tree")
    story.runs.settle()
    story.is_published_on(story.pinned)


@pytest.mark.parametrize("refusal", [CheckoutError("couldn't find remote ref"), RemoteRefused("returned error: 403")])
def test_a_base_that_cannot_be_had_keeps_the_patch_where_it_was_tested(
    story: IssueStory, monkeypatch: pytest.MonkeyPatch, refusal: CheckoutError
) -> None:
    story.main_goes_on({"other.py": "x = 1\n"})
    _fetch_of_main_fails(monkeypatch, [refusal])
    story.runs.settle()
    story.is_published_on(story.pinned)
    assert "The newest commit of the base branch could not be fetched." in story.body


@pytest.mark.parametrize("work", ["merged_tree", "is_ancestor", "commits_between", "tree_of"])
def test_a_git_that_fails_at_the_merge_keeps_the_patch_where_it_was_tested(
    story: IssueStory, monkeypatch: pytest.MonkeyPatch, work: str
) -> None:
    story.main_goes_on({"other.py": "x = 1\n"})
    _git_fails(monkeypatch, work)
    story.runs.settle()
    story.is_published_on(story.pinned)
    assert "The base branch has moved on, and git could not merge the patch into it." in story.body


def test_a_github_that_does_not_answer_is_waited_for(story: IssueStory, monkeypatch: pytest.MonkeyPatch) -> None:
    newest = story.main_goes_on({"other.py": "x = 1\n"})
    _fetch_of_main_fails(monkeypatch, [RemoteUnavailable("GitHub is away."), RemoteUnavailable("GitHub is away.")])
    story.runs.settle()
    story.is_published_on(newest)
    assert "GitHub is away." in story.words


def _killed_at_the_push(story: IssueStory, monkeypatch: pytest.MonkeyPatch, *, pushes: bool) -> list[str]:
    """Work until the worker is killed before or after its first push; return the commits that it would push."""
    push, commits = LocalMirror.push, []

    def die(self: LocalMirror, remote: GitRemote, sha: str, branch: str, **options: Any) -> None:
        commits.append(sha)
        if pushes:
            push(self, remote, sha, branch, **options)
        raise Killed

    story.give_attempt()
    assert story.task.id is not None
    with monkeypatch.context() as patched:
        patched.setattr(LocalMirror, "push", die)
        with pytest.raises(Killed):
            work_on(story.runs.runtime, story.task.id)
    return commits


def _fetch_of_main_fails(monkeypatch: pytest.MonkeyPatch, errors: list[CheckoutError]) -> None:
    """Let the next fetches of main alone fail: the first one of a task asks for its commit too."""
    fetch = LocalMirror.fetch

    def fail(self: LocalMirror, remote: GitRemote, refs: Sequence[str], *, timeout_s: float) -> None:
        if list(refs) == ["refs/heads/main"] and errors:
            raise errors.pop(0)
        fetch(self, remote, refs, timeout_s=timeout_s)

    monkeypatch.setattr(LocalMirror, "fetch", fail)


def _git_fails(monkeypatch: pytest.MonkeyPatch, work: str) -> None:
    """An old one lacks the command; a huge history takes longer than it may."""

    def fail(*_: object) -> None:
        raise CheckoutError("git did not end within 120 s")

    monkeypatch.setattr(LocalMirror, work, fail)

"""Who may start what, by `.acrouter.yml` on the default branch and GitHub's answer at that moment."""

import time
from dataclasses import replace
from typing import Any

import pytest

from bot.events import Commit, IssueClosed, IssueLabeled, PullRequestClosed, Pushed, Sender
from store.database import Database
from store.repo_yaml import RepositoryConfigurationError
from store.states import TaskKind, TaskState, Trigger
from store.tables import ConfigurationFile, Installation, Repository
from store.types import utc_now
from tests.support.rows import add_attempt, add_repository, add_task
from tests.support.story import NOW, REPOSITORY, Story, StoryForge
from workers import budgets
from workers.configuration import in_force
from workers.ports import RepositoryRef


@pytest.mark.parametrize(
    ("needed", "role", "starts"),
    [
        ("write", "write", True),
        ("write", "maintain", True),
        ("write", "triage", False),
        ("write", "read", False),
        ("maintain", "write", False),
        ("maintain", "maintain", True),
        ("admin", "maintain", False),
        ("admin", "admin", True),
    ],
)
def test_the_configured_permission_is_the_least_that_a_person_needs(
    story: Story, needed: str, role: str, starts: bool
) -> None:
    story.configure(f"who:\n  permission: {needed}\n")
    story.forge.roles["ada"] = role  # type: ignore[assignment]
    story.comment("/route fix", by="ada")
    assert len(story.tasks()) == starts
    if role == "write" and not starts:
        assert needed in story.words()


@pytest.mark.parametrize("command", ["/route fix", "/route stop", "/route explain"])
def test_who_may_sort_issues_and_not_push_commands_nothing(story: Story, command: str) -> None:
    story.comment("/route fix")
    story.forge.roles["ada"] = "triage"
    assert story.comment(command, by="ada") == "ada has no write permission"
    assert story.words() == ""
    assert [task.state for task in story.tasks()] == [TaskState.QUEUED]


def test_on_a_closed_issue_no_work_starts(story: Story) -> None:
    story.comment("/route fix", is_open=False)
    assert story.tasks() == []
    assert "This is closed. Open it again first." in story.words()


def test_the_label_on_a_closed_issue_starts_nothing(story: Story) -> None:
    assert story.label(is_open=False) == "the issue is closed"
    assert story.tasks() == []


def test_a_stop_ends_no_task_of_another_repository_with_the_same_number(story: Story) -> None:
    add_task(story.database, repository_id=add_repository(story.database, 43, "octo/more"), target="43/issues/1")
    story.comment("/route stop")
    assert [task.state for task in story.tasks()] == [TaskState.QUEUED]
    assert "Nothing is at work here" in story.words()


def test_a_file_that_was_never_valid_gives_no_rules_to_spend_money_by(story: Story) -> None:
    story.configure("day_budget_us: 1\n")
    repository, forge = RepositoryRef(42, 7, "octo/tools"), story.runtime.forge
    assert forge is not None
    with pytest.raises(RepositoryConfigurationError, match="Did you mean 'day_budget_usd'"):
        in_force(story.database, forge, repository, story.runtime.settings)


def test_one_wrong_answer_of_githubs_takes_no_rules_away(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.configure("who:\n  permission: admin\n")
    story.push("main", ".acrouter.yml")
    answers: list[str | None] = [None]
    asked = StoryForge.file_text

    def wrong_once(*arguments: Any) -> str | None:
        return answers.pop() if answers else asked(*arguments)

    monkeypatch.setattr(StoryForge, "file_text", wrong_once)
    story.comment("/route fix")
    assert answers == []
    assert story.tasks() == []


def test_where_teams_are_named_permission_alone_is_not_enough(story: Story) -> None:
    story.configure("who:\n  teams: [core, release]\n")
    story.comment("/route fix")
    assert story.tasks() == []
    assert "members of core, release" in story.words().replace("\\", "")
    story.forge.teams["release"] = {"maintainer", "stranger"}
    story.comment("/route fix", by="stranger")
    assert story.tasks() == []
    story.comment("/route fix")
    assert len(story.tasks()) == 1


def test_a_bot_on_the_list_may_start_work_and_others_are_skipped_in_silence(story: Story) -> None:
    story.configure('who:\n  bots: ["renovate[bot]"]\n')
    story.push("main", ".acrouter.yml")
    assert story.comment("/route fix", by="dependabot[bot]") == "written by a bot"
    assert story.label(by="dependabot[bot]") is not None
    assert story.tasks() == []
    assert story.forge.replies == {}
    story.comment("/route fix", by="Renovate[bot]")
    assert [task.requested_by for task in story.tasks()] == ["Renovate[bot]"]


def test_a_bot_that_was_taken_off_the_list_commands_nothing_more(story: Story) -> None:
    story.configure('who:\n  bots: ["renovate[bot]"]\n')
    story.push("main", ".acrouter.yml")
    story.comment("/route fix", by="renovate[bot]")
    story.configure("")
    story.comment("/route stop", by="renovate[bot]")
    assert [task.state for task in story.tasks()] == [TaskState.QUEUED]


def test_acrouter_on_the_list_summons_itself_all_the_same_not(story: Story) -> None:
    story.configure('who:\n  bots: ["acrouter[bot]"]\n')
    story.push("main", ".acrouter.yml")
    story.comment("/route fix", by="acrouter[bot]")
    story.label(by="acrouter[bot]")
    assert story.tasks() == []


def test_commands_can_be_switched_off_and_still_tell(story: Story) -> None:
    story.configure("triggers:\n  commands: false\n")
    story.comment("/route fix")
    assert story.tasks() == []
    assert "triggers.commands" in story.words()
    story.label()
    assert [task.trigger for task in story.tasks()] == [Trigger.LABEL]


def test_a_repository_has_a_label_of_its_own(story: Story) -> None:
    story.configure("triggers:\n  label: robot please\n")
    story.push("main", ".acrouter.yml")
    assert story.label("acrouter") == "another label"
    story.label("Robot Please")
    assert len(story.tasks()) == 1


def test_an_image_that_the_operator_does_not_allow_is_a_failed_check_and_the_last_valid_file_stays(
    story: Story,
) -> None:
    story.configure("triggers:\n  label: robot\n")
    story.push("main", ".acrouter.yml")
    text = "triggers:\n  label: other\nservices:\n  db:\n    image: postgres:16\n"
    story.configure(text)
    story.forge.files["octo/tools", "e" * 40] = text
    story.push("main", ".acrouter.yml", sha="e" * 40)
    (face,) = [face for sha, face in story.forge.checks.values() if sha == "e" * 40]
    assert face.conclusion == "failure"
    assert [(note.line, "does not allow the image 'postgres:16'" in note.message) for note in face.annotations] == [
        (5, True)
    ]
    story.label("other")
    assert story.tasks() == []
    story.label("robot")
    assert len(story.tasks()) == 1


def test_a_mistake_shows_as_a_failed_check_with_its_line_and_the_last_valid_file_stays_in_force(story: Story) -> None:
    story.configure("who:\n  permission: admin\n")
    story.forge.files["octo/tools", "b" * 40] = "who:\n  permission: admin\n"
    story.push("main", ".acrouter.yml")
    story.configure("who:\n  permision: write\nbudget_usd: -1\n")
    story.forge.files["octo/tools", "e" * 40] = "who:\n  permision: write\nbudget_usd: -1\n"
    story.push("main", ".acrouter.yml", sha="e" * 40)
    faces = [face for _, face in story.forge.checks.values()]
    assert [face.conclusion for face in faces] == ["success", "failure"]
    assert faces[1].name == "acrouter configuration"
    assert [(note.path, note.line) for note in faces[1].annotations] == [(".acrouter.yml", 2), (".acrouter.yml", 3)]
    assert "Did you mean 'permission'?" in faces[1].annotations[0].message
    story.comment("/route fix")
    assert story.tasks() == [], "who: admin is in force still"


def test_a_configuration_on_another_branch_is_checked_and_not_in_force(story: Story) -> None:
    story.forge.files["octo/tools", "b" * 40] = "who:\n  permission: admin\n"
    story.push("feature", "src/a.py", ".acrouter.yml")
    [(sha, face)] = story.forge.checks.values()
    assert (sha, face.conclusion) == ("b" * 40, "success")
    story.comment("/route fix")
    assert len(story.tasks()) == 1


def test_a_push_that_leaves_the_configuration_alone_asks_github_nothing(story: Story) -> None:
    story.push("feature", "src/a.py")
    assert story.forge.calls == []


def test_a_file_that_is_taken_away_holds_no_longer(story: Story) -> None:
    story.configure("who:\n  permission: admin\n")
    story.comment("/route fix")
    story.configure(None)
    story.comment("/route fix")
    assert len(story.tasks()) == 1
    with story.database.session() as session:
        assert session.get(ConfigurationFile, 42) is None


def test_the_organisations_file_holds_where_a_repository_says_nothing(story: Story) -> None:
    add_repository(story.database, 43, "octo/.github")
    story.configure("who:\n  permission: admin\nbudget_usd: 0.5\n", "octo/.github")
    story.comment("/route fix")
    assert story.tasks() == []
    story.configure("who:\n  permission: write\n")
    story.comment("/route fix")
    assert len(story.tasks()) == 1


def test_the_organisations_file_holds_in_its_own_repository_and_is_read_once(story: Story) -> None:
    add_repository(story.database, 43, "octo/.github")
    story.configure("organisation: {day_budget_usd: 1}\n", "octo/.github")
    home = RepositoryRef(43, 7, "octo/.github")
    assert story.runtime.forge is not None
    rules = in_force(story.database, story.runtime.forge, home, story.runtime.settings)
    assert rules.config.organisation.day_budget_usd == 1.0
    assert story.forge.calls.count("file_text") == 1


def test_another_owners_file_means_nothing_here(story: Story) -> None:
    add_repository(story.database, 43, "other/.github")
    story.configure("who:\n  permission: admin\n", "other/.github")
    story.comment("/route fix")
    assert len(story.tasks()) == 1


def test_the_organisations_file_holds_on_when_it_has_another_name(story: Story) -> None:
    add_repository(story.database, 43, "octo/.github")
    renamed = replace(REPOSITORY, full_name="octopus/tools")
    story.configure("who:\n  permission: admin\n", "octopus/.github")
    story.comment("/route fix", repository=renamed)
    assert story.tasks() == []
    assert "takes admin permission" in story.words()
    with story.database.reading() as session:
        assert session.get_one(Installation, 7).account == "octopus"


def test_a_push_of_many_long_messages_is_handled_at_once(story: Story) -> None:
    commits = tuple(Commit(f"{number:040}", "This everts \n" + "* a\n" * 5_000) for number in range(250))
    before = time.process_time()
    story.tell(Pushed(REPOSITORY, Sender("maintainer", False), "main", "a" * 40, "b" * 40, commits, NOW))
    assert time.process_time() - before < 20


def test_route_budget_tells_each_cap_what_is_used_and_who_can_raise_it(sqlite_database: Database) -> None:
    story = Story(sqlite_database, day_budget_usd=10.0, organisation_day_budget_usd=8.0, person_day_budget_usd=3.0)
    story.configure("day_budget_usd: 4\n")
    story.comment("/route fix\n/route budget")
    [task] = story.tasks()
    assert task.id is not None
    words = story.words().replace("\\", "")
    for expected in (
        *("The budget a day", "$10.00", "ACROUTER_DAY_BUDGET_USD", "octo's budget a day", "$8.00"),
        *("This repository's budget a day", "$4.00", "`day_budget_usd` in .acrouter.yml".replace("`", "")),
        *("maintainer's budget a day", "$3.00", "ACROUTER_PERSON_DAY_BUDGET_USD"),
    ):
        assert expected in words.replace("`", ""), expected
    attempt = add_attempt(story.database, task.id)
    budgets.reserve(story.database, story.runtime.settings, task_id=task.id, attempt_id=attempt, model="small", usd=1.0)
    story.comment("/route budget")
    assert "$1.00 of" in story.words()


def test_work_that_a_repositorys_cap_forbids_says_which_and_who_can_raise_it(sqlite_database: Database) -> None:
    story = Story(sqlite_database)
    story.configure("day_budget_usd: 0.5\n")
    story.comment("/route fix", number=1)
    task_id = story.tasks()[0].id or 0
    attempt = add_attempt(story.database, task_id)
    budgets.reserve(story.database, story.runtime.settings, task_id=task_id, attempt_id=attempt, model="small", usd=0.5)
    story.comment("/route fix", number=2)
    assert len(story.tasks()) == 1
    words = story.words(2).replace("\\", "").replace("`", "")
    assert "This repository's budget of $0.50 a day is used up" in words
    assert "A maintainer can raise day_budget_usd in .acrouter.yml" in words


def test_nothing_happens_before_the_onboarding_pr_is_merged(sqlite_database: Database) -> None:
    story = Story(sqlite_database, onboarding="required")
    story.comment("/route fix")
    story.label()
    assert story.tasks() == []
    [proposal] = story.forge.proposals
    assert (proposal["branch"], proposal["path"]) == ("acrouter/configure", ".acrouter.yml")
    assert "does nothing in this repository until this pull request is merged" in proposal["body"]
    assert "merge PR 99 first" in story.words()
    story.configure(str(proposal["text"]))
    story.comment("/route fix")
    assert [task.state for task in story.tasks()] == [TaskState.QUEUED]


def test_an_organisation_can_do_without_onboarding(sqlite_database: Database) -> None:
    story = Story(sqlite_database, onboarding="required")
    add_repository(story.database, 43, "octo/.github")
    story.configure("organisation:\n  onboarding: off\n", "octo/.github")
    story.comment("/route fix")
    assert len(story.tasks()) == 1
    assert story.forge.proposals == []


def test_a_repository_that_is_gone_from_the_installation_has_no_say(story: Story) -> None:
    add_repository(story.database, 43, "octo/.github")
    with story.database.session() as session:
        session.add(session.get_one(Repository, 43).sqlmodel_update({"active": False}))
    story.configure("who:\n  permission: admin\n", "octo/.github")
    story.comment("/route fix")
    assert len(story.tasks()) == 1


def test_two_hooks_for_one_comment_start_one_task_even_after_its_end(story: Story) -> None:
    story.comment("/route fix", comment_id=5)
    story.comment("/route fix", comment_id=5)
    assert story.forge.replies == {}, "the second hook is no second request"
    story.end(story.tasks()[0])
    story.comment("/route fix", comment_id=5)
    assert len(story.tasks()) == 1
    story.comment("/route fix", comment_id=6)
    assert len(story.tasks()) == 2


def test_two_hooks_for_one_stop_say_nothing_wrong(story: Story) -> None:
    story.comment("/route fix", comment_id=6)
    story.comment("/route stop", comment_id=7)
    story.comment("/route stop", comment_id=7)
    assert [task.state for task in story.tasks()] == [TaskState.STOPPED]
    assert story.forge.replies == {}


def test_a_stop_whose_hook_comes_again_ends_nothing_that_was_asked_for_since(story: Story) -> None:
    story.label()
    story.comment("/route stop", comment_id=7)
    story.comment("/route fix", comment_id=8)
    assert story.comment("/route stop", comment_id=7) == "the task here was asked for later"
    assert [task.state for task in story.tasks()] == [TaskState.STOPPED, TaskState.QUEUED]
    assert story.forge.replies == {}
    story.comment("/route stop", comment_id=9)
    assert [task.state for task in story.tasks()] == [TaskState.STOPPED] * 2


def test_a_comment_that_stops_a_task_and_starts_another_does_so_however_often_it_is_told(story: Story) -> None:
    story.label()
    for _ in range(2):
        story.comment("/route stop\n\n/route fix", comment_id=5)
    assert [task.state for task in story.tasks()] == [TaskState.STOPPED, TaskState.QUEUED]


@pytest.mark.parametrize(
    ("labelled", "state"), [("2026-01-01T00:00:01Z", TaskState.QUEUED), ("2025-12-31T23:59:59Z", TaskState.STOPPED)]
)
def test_a_late_stop_ends_what_the_label_started_before_it(story: Story, labelled: str, state: TaskState) -> None:
    sender = Sender("maintainer", is_bot=False)
    story.tell(IssueLabeled(REPOSITORY, sender, 1, "Title", "", "acrouter", is_open=True, at=labelled))
    story.comment("/route stop")
    assert [task.state for task in story.tasks()] == [state]


@pytest.mark.parametrize("is_closed", [True, False])
def test_a_late_word_of_a_closed_issue_ends_no_work_on_it_once_it_is_open_again(story: Story, is_closed: bool) -> None:
    story.forge.closed = {1} if is_closed else set()
    story.label()
    told = story.tell(IssueClosed(REPOSITORY, Sender("ada", False), 1, NOW))
    assert told == (None if is_closed else "it was opened again since")
    assert [task.state for task in story.tasks()] == [TaskState.STOPPED if is_closed else TaskState.QUEUED]


def test_an_issue_that_is_closed_while_a_task_is_at_work_is_not_asked_about(story: Story) -> None:
    story.label()
    story.tell(IssueClosed(REPOSITORY, Sender("ada", False), 1, utc_now()))
    assert "issue" not in story.forge.calls
    assert [task.state for task in story.tasks()] == [TaskState.STOPPED]


@pytest.mark.parametrize("is_closed", [True, False])
def test_a_late_word_of_a_closed_pr_ends_no_work_on_it_once_it_is_open_again(story: Story, is_closed: bool) -> None:
    story.forge.closed = {9} if is_closed else set()
    add_task(story.database, kind=TaskKind.PULL_REQUEST, target="42/pull/9", target_number=9)
    ada = Sender("ada", False)
    story.tell(PullRequestClosed(REPOSITORY, ada, ada, 9, "", "", False, "", "feature", "d" * 40, 42, NOW))
    assert [task.state for task in story.tasks()] == [TaskState.STOPPED if is_closed else TaskState.QUEUED]

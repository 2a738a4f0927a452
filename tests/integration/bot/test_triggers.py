"""Who can start what, told as stories between GitHub and the bot."""

import httpx
import pytest

from store.states import TaskKind, TaskState, Trigger
from store.tables import Installation, Repository
from tests.support.github import faults
from tests.support.world import World
from workers.reports import repository_ref
from workers.target_words import read_words

pytestmark = pytest.mark.node


def test_the_label_starts_a_task_on_an_issue(world: World) -> None:
    number = world.github.open_issue("The total is wrong", "It leaves one out.")
    world.github.label(number, "acrouter")
    world.settle()
    (task,) = world.tasks()
    assert (task.kind, task.trigger, task.target_number) == (TaskKind.ISSUE, Trigger.LABEL, number)
    assert (task.requested_by, task.title, task.text) == ("maintainer", "The total is wrong", "It leaves one out.")
    assert world.queue.tasks == [task.id]
    with world.database.session() as session:
        repository = session.get_one(Repository, task.repository_id)
        assert (repository.full_name, repository.default_branch) == ("acme/shop", "main")
        assert session.get_one(Installation, repository.installation_id).account == "acme"


def test_another_label_starts_nothing(world: World) -> None:
    world.github.label(world.github.open_issue("Bug"), "bug")
    world.settle()
    assert world.tasks() == []
    assert "another label" in world.reasons("issues")


def test_a_label_by_somebody_who_may_not_push_gets_a_word_and_goes(world: World) -> None:
    world.github.set_permission("reader", "read")
    number = world.github.open_issue("Bug")
    world.github.label(number, "acrouter", by="reader")
    world.settle()
    assert world.tasks() == []
    assert world.github.labels(number) == set()
    assert ["write permission" in comment["body"] for comment in world.github.comments(number)] == [True]


def test_a_command_on_an_issue_starts_a_task_with_its_options(world: World) -> None:
    number = world.github.open_issue("Bug")
    world.github.comment(number, 'Please.\n\n/route fix model=strong budget=1.5 hint="look at cart.py"')
    world.settle()
    (task,) = world.tasks()
    assert (task.kind, task.trigger) == (TaskKind.ISSUE, Trigger.COMMAND)
    assert (task.pinned_model, task.budget_usd, task.hint) == ("strong", 1.5, "look at cart.py")


def test_a_command_on_a_pr_pins_the_head_that_the_person_saw(world: World) -> None:
    sha = world.github.push("feature", {"a.txt": "a\n"})
    number = world.github.open_pull_request("Feature", head="feature")
    world.github.comment(number, "/route fix")
    world.settle()
    world.github.push("feature", {"a.txt": "swapped\n"})
    (task,) = world.tasks()
    assert (task.kind, task.base_ref, task.base_sha) == (TaskKind.PULL_REQUEST, "feature", sha)
    assert task.target.endswith(f"/pull/{number}")


def test_a_forks_head_that_came_after_the_command_is_not_worked_on_unseen(world: World) -> None:
    fork = world.github.fork("stranger")
    world.github.push("feature", {"a.txt": "a\n"}, by="stranger", repository=fork)
    number = world.github.open_pull_request("Add a", head="stranger:feature", by="stranger")
    world.github.comment(number, "/route fix")
    swapped = world.github.push("feature", {"setup.py": "print('mine')\n"}, by="stranger", repository=fork)
    world.settle()
    assert world.tasks() == []
    assert "Look at it, then send the command again." in world.github.comments(number)[-1]["body"]
    world.github.comment(number, "/route fix")
    world.settle()
    assert [task.base_sha for task in world.tasks()] == [swapped], "now the person has seen it"


def test_a_pr_is_worked_on_with_the_words_that_the_person_saw_at_each_try(world: World) -> None:
    world.github.fork("stranger")
    world.github.push("feature", {"a.txt": "a\n"}, by="stranger", repository="stranger/shop")
    number = world.github.open_pull_request("Add a", head="stranger:feature", by="stranger", body="Harmless words.")
    world.github.comment(number, "/route fix")
    world.settle()
    (task,) = world.tasks()
    changed = {"title": "Swapped title", "body": "Swapped words."}
    world.github._do("PATCH", f"/pulls/{number}", changed, "stranger", "")
    forge = world.runtime.forge
    assert forge is not None
    for _ in range(2):
        words = read_words(forge, repository_ref(world.runtime, task.repository_id or 0), task)
        assert (words.title, words.asked) == ("Add a", "Harmless words.")
        assert words.text.startswith("Harmless words.")
        assert "a.txt" in words.text
        assert "Swapped" not in words.text
        task.text = words.asked  # what a try leaves


@pytest.mark.parametrize("body", ["> /route fix", "```\n/route fix\n```", "see `/route fix`", "<!--\n/route fix\n-->"])
def test_a_quoted_command_starts_nothing(world: World, body: str) -> None:
    number = world.github.open_issue("Bug")
    world.github.comment(number, body)
    world.settle()
    assert world.tasks() == []
    assert len(world.github.comments(number)) == 1


def test_an_edited_comment_starts_nothing(world: World) -> None:
    number = world.github.open_issue("Bug")
    comment = world.github.comment(number, "I will try.")
    world.github.edit_comment(comment, "/route fix")
    world.settle()
    assert world.tasks() == []


def test_a_strangers_command_gets_no_work_and_no_answer(world: World) -> None:
    number = world.github.open_issue("Bug")
    world.github.comment(number, "/route fix", by="stranger")
    world.github.comment(number, "/route nonsense", by="stranger")
    world.settle()
    assert world.tasks() == []
    assert len(world.github.comments(number)) == 2
    assert world.reasons("issue_comment") == ["stranger has no write permission"] * 2


def test_permission_is_asked_for_when_the_command_is_read(world: World) -> None:
    number = world.github.open_issue("Bug")
    world.github.comment(number, "/route fix")
    world.github.set_permission("maintainer", "read")
    world.settle()
    assert world.tasks() == []


def test_our_own_words_summon_nobody(world: World) -> None:
    number = world.github.open_issue("Bug")
    world.github.label(number, "acrouter")
    world.settle()
    repository = repository_ref(world.runtime, world.tasks()[0].repository_id or 0)
    assert world.runtime.forge is not None
    world.runtime.forge.reply(repository, number, "<!-- x -->", "\n/route fix\n")
    world.settle()
    assert len(world.tasks()) == 1
    assert "written by a bot" in world.reasons("issue_comment")


def test_a_wrong_command_gets_one_helpful_answer(world: World) -> None:
    number = world.github.open_issue("Bug")
    world.github.comment(number, "/route fxi")
    world.settle()
    answers = world.github.comments(number)[1:]
    assert len(answers) == 1
    assert "Did you mean 'fix'?" in answers[0]["body"]


def test_an_unknown_model_is_named_with_those_that_are_there(world: World) -> None:
    number = world.github.open_issue("Bug")
    world.github.comment(number, "/route fix model=stong")
    world.settle()
    assert world.tasks() == []
    answer = world.github.comments(number)[1]["body"]
    assert "Did you mean 'strong'?" in answer
    assert "cheap, strong" in answer


def test_a_second_command_joins_the_task_that_is_open(world: World) -> None:
    number = world.github.open_issue("Bug")
    world.github.label(number, "acrouter")
    world.settle()  # webhooks overtake each other
    world.github.comment(number, "/route fix")
    world.settle()
    assert len(world.tasks()) == 1
    assert "at work here already" in world.github.comments(number)[1]["body"]


def test_a_redelivery_changes_nothing(world: World) -> None:
    number = world.github.open_issue("Bug")
    world.github.comment(number, "/route fix")
    world.settle()
    (task,) = world.tasks()
    world.end(task.id or 0)
    for delivery in list(world.github.deliveries):
        world.github.redeliver(delivery)
    world.settle()
    assert len(world.tasks()) == 1


def test_the_circuit_breaker_answers_instead_of_working(world: World) -> None:
    number = world.github.open_issue("Bug")
    for _ in range(world.runtime.settings.max_tasks_per_target):
        world.github.comment(number, "/route fix")
        world.settle()
        world.end(world.tasks()[-1].id or 0)
    world.github.label(number, "acrouter")
    world.settle()
    assert len(world.tasks()) == world.runtime.settings.max_tasks_per_target
    assert "which is the limit" in world.github.comments(number)[-1]["body"]
    assert world.github.labels(number) == {"acrouter:failed"}


def test_stop_ends_a_waiting_task(world: World) -> None:
    number = world.github.open_issue("Bug")
    world.github.label(number, "acrouter")
    world.settle()  # webhooks overtake each other
    world.github.comment(number, "/route stop")
    world.settle()
    (task,) = world.tasks()
    assert task.state is TaskState.STOPPED
    assert task.stop_requested_by == "maintainer"


def test_stop_without_a_task_says_so(world: World) -> None:
    number = world.github.open_issue("Bug")
    world.github.comment(number, "/route stop")
    world.settle()
    assert "Nothing is at work here" in world.github.comments(number)[-1]["body"]


def test_retry_on_our_pr_tries_the_issue_behind_it_again(world: World) -> None:
    issue = world.github.open_issue("Bug")
    world.github.label(issue, "acrouter")
    world.settle()
    pull = world.publish(world.tasks()[0].id or 0)
    world.github.comment(pull, "/route retry model=strong")
    world.settle()
    first, second = world.tasks()
    assert (second.kind, second.target, second.pinned_model) == (first.kind, first.target, "strong")


def test_help_status_and_explain_answer_once(world: World) -> None:
    number = world.github.open_issue("Bug")
    world.github.label(number, "acrouter")
    world.settle()  # webhooks overtake each other
    world.github.comment(number, "/route help\n/route status\n/route explain")
    world.settle()
    answers = [comment["body"] for comment in world.github.comments(number)[1:]]
    assert len(answers) == 3
    assert "`/route retry`" in answers[0]
    assert "Waiting for a worker" in answers[1]
    assert "No model has been chosen yet" in answers[2]


def test_github_being_down_delays_a_command_and_loses_it_not(world: World) -> None:
    number = world.github.open_issue("Bug")
    world.github.on("GET", ".*/permission$", faults.SECONDARY_LIMIT)
    world.github.comment(number, "/route fix")
    world.settle()
    assert world.tasks() == []
    world.wait_no_longer()
    world.settle()
    assert len(world.tasks()) == 1


def test_an_unsigned_webhook_is_refused(world: World) -> None:
    url = world.github.webhook_url or ""
    answer = httpx.post(url, json={}, headers={"X-GitHub-Event": "ping", "X-GitHub-Delivery": "1"})
    assert answer.status_code == 401
    assert world.deliveries() == []

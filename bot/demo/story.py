"""The demo's story: an issue, a pull request, a merge, and a second issue that the merge gives to another model."""

from dataclasses import dataclass

from rich.console import Console

from bot.demo import show
from bot.demo.errors import StoryError
from bot.demo.follow import follow, wait_for_state
from bot.demo.materialise import BugRepository
from bot.demo.stage import Stage
from store.states import TaskState
from templates.escape import usd
from workers.views import TaskView, task_view

REPOSITORY = "demo/boltons"
# No dice in a demonstration: the votes alone decide, so that the story is the same each time.
CONFIGURATION = "# Nothing is left to chance here: the best vote wins.\nexploration: off\n"
_TASK_TIMEOUT_S = 900.0
_MERGE_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class Told:
    """Both tasks as they stood when the story ended."""

    first: TaskView
    second: TaskView


def tell(stage: Stage, console: Console, first: BugRepository, second: BugRepository) -> Told:
    """Play the story, printing it as it happens.

    Raises:
        StoryError: something took too long or ended without a pull request, so that the story cannot go on.
    """
    stage.github.create_repository(REPOSITORY, first.git_dir)
    stage.github.push("main", {".acrouter.yml": CONFIGURATION}, message="Set acrouter up")
    console.rule("[bold]1. An issue gets the label")
    first_id = _solve(stage, console, first)

    console.rule("[bold]2. A person merges the pull request")
    pull = _view(stage, first_id).task.pr_number
    if pull is None:
        raise StoryError("The first issue ended without a pull request, so there is nothing to merge.")
    stage.github.merge(pull)
    wait_for_state(stage.runtime.database, first_id, TaskState.MERGED, timeout_s=_MERGE_TIMEOUT_S)
    console.print(f"Pull request {pull} is merged. That is the outcome; it replaces the verifier's score.")

    console.rule("[bold]3. A similar issue gets the label")
    second_id = _solve(stage, console, second)

    told = Told(_view(stage, first_id), _view(stage, second_id))
    console.rule("[bold]4. What changed, and why")
    console.print(show.comparison_shown(told.first, told.second))
    return told


def unmet(told: Told, *, scripted: bool) -> list[str]:
    """Return what the story was to show and did not, as sentences; empty where it held."""
    promises = {
        "The first issue's pull request was not merged.": told.first.task.state is TaskState.MERGED,
        "The first issue's patch was not verified.": _verified(told.first),
        "The second issue has no pull request.": told.second.task.state is TaskState.PUBLISHED,
        "The second issue's patch was not verified.": _verified(told.second),
        "The second decision does not know the first task.": _knows(told.second, told.first),
    }
    if scripted:
        promises |= {
            "The first issue needed no second model.": len(told.first.attempts) > 1,
            "The second issue was not given to the model whose pull request was merged.": _learnt(told),
        }
    return [sentence for sentence, held in promises.items() if not held]


def _solve(stage: Stage, console: Console, repository: BugRepository) -> int:
    bug = repository.bug
    number = stage.github.open_issue(bug.title, bug.issue)
    console.print(f"Issue {number}: [bold]{show.safe(bug.title)}[/]")
    stage.github.label(number, stage.runtime.settings.trigger_label)
    task_id = follow(console, stage.runtime.database, number, timeout_s=_TASK_TIMEOUT_S)
    view = _view(stage, task_id)
    if view.decision is not None:
        console.print(show.decision_shown(view.decision, scripted=stage.scripted))
    console.print(show.attempts_shown(view))
    if view.published is None:
        raise StoryError(f"Issue {number} ended without a pull request: {view.task.reason}")
    console.print(show.diff_shown(view.published.attempt.patch))
    console.print(f"Pull request: [bold]{show.safe(view.task.pr_url)}[/]  Spent: {usd(view.spent_usd)}")
    return task_id


def _view(stage: Stage, task_id: int) -> TaskView:
    runtime = stage.runtime
    return task_view(runtime.database, task_id, runtime.settings, runtime.pool)


def _verified(view: TaskView) -> bool:
    published = view.published
    return published is not None and published.verification is not None and published.verification.verdict == "verified"


def _knows(later: TaskView, earlier: TaskView) -> bool:
    known = later.decision.neighbours if later.decision else []
    return any(neighbour["title"] == earlier.task.title and neighbour["final"] for neighbour in known)


def _learnt(told: Told) -> bool:
    merged, first, second = told.first.published, told.first.decision, told.second.decision
    if merged is None or first is None or second is None:
        return False
    return first.chosen != merged.attempt.model == second.chosen

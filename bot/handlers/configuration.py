"""A check run that says whether `.acrouter.yml` is as it should be, on every commit that changes it."""

from bot.events import Pushed
from bot.handlers.context import Context
from bot.handlers.rules import rules_now
from store.image_rules import check_images
from store.repo_config import CONFIG_FILE, parse_repository_config
from store.repo_yaml import Mistake, RepositoryConfigurationError
from templates import render
from workers.ports import Annotation, CheckRunContent

CHECK_ID = "acrouter-configuration"
_MOST_LISTED = 20
"""GitHub's own number of commits in one push event may be smaller than the push."""


def configuration_pushed(context: Context, event: Pushed) -> str | None:
    """Check the file where a push may have changed it. On the default branch a valid one is in force from now on."""
    if not _may_touch_it(event):
        return "the configuration is as it was"
    return check_configuration(context, event.after, in_force=event.branch == event.repository.default_branch)


def check_configuration(context: Context, sha: str, *, in_force: bool = False) -> str | None:
    """Put the check run on a commit: success, or a failure that names each mistake with its line."""
    text = context.forge.file_text(context.repository, CONFIG_FILE, sha)
    if in_force:
        rules_now(context)  # keeps what is valid
    if text is None:
        return f"there is no {CONFIG_FILE}"
    mistakes: tuple[Mistake, ...] = ()
    try:
        check_images(parse_repository_config(text), text, context.settings.sandbox_images)
    except RepositoryConfigurationError as error:
        mistakes = error.mistakes
    content = CheckRunContent(
        title=_title(mistakes),
        summary=render("checks/configuration.md.j2", mistakes=mistakes, file=CONFIG_FILE),
        conclusion="failure" if mistakes else "success",
        name="acrouter configuration",
        annotations=[Annotation(CONFIG_FILE, mistake.line or 1, mistake.words) for mistake in mistakes],
    )
    context.forge.upsert_check_run(context.repository, sha, CHECK_ID, content, None)
    return None


def _title(mistakes: tuple[Mistake, ...]) -> str:
    if not mistakes:
        return f"{CONFIG_FILE} is valid"
    return f"{CONFIG_FILE} has {'a mistake' if len(mistakes) == 1 else f'{len(mistakes)} mistakes'}"


def _may_touch_it(event: Pushed) -> bool:
    # A longer push is listed in part, and a new branch may begin anywhere.
    return len(event.commits) >= _MOST_LISTED or any(CONFIG_FILE in commit.paths for commit in event.commits)

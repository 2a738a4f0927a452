"""What can be done to an issue (or to a pull request as to an issue), each with the webhook that GitHub sends."""

from collections.abc import Mapping, Sequence
from typing import Any

from bot.demo.hub.hub import Hub, invalid, not_found, text_of
from bot.demo.hub.issue_shapes import comment_json, issue_json, pull_json
from bot.demo.hub.shapes import label_json
from bot.demo.hub.state import Comment, Issue, Label, Pull, Repository, User, now

Json = dict[str, Any]

# https://docs.github.com/en/rest: a body ends at 65,536 characters.
BODY_LIMIT = 65_536


def find(repository: Repository, number: int) -> Issue:
    """Return an issue or a pull request.

    Raises:
        HubRefusal: there is none (404).
    """
    issue = repository.issues.get(number)
    if issue is None:
        raise not_found()
    return issue


def create(hub: Hub, repository: Repository, title: str, body: str, author: User, *, pull: Pull | None = None) -> Issue:
    """Number and keep an issue or a pull request, and tell of it."""
    if len(body) > BODY_LIMIT:
        raise invalid("Issue", "body")
    with hub.state.lock:
        number = len(repository.issues) + 1
        issue = Issue(hub.state.next_id(), number, title, body, author, pull=pull)
        repository.issues[number] = issue
        tell(hub, repository, issue, "opened", author)
    return issue


def edit(hub: Hub, repository: Repository, issue: Issue, changes: Mapping[str, Any], by: User) -> None:
    """Change title, body and state as the API's PATCH does."""
    with hub.state.lock:
        if "title" in changes:
            issue.title = text_of(changes, "title", "Issue")
        if "body" in changes:
            issue.body = str(changes["body"] or "")
        issue.updated_at = now()
        state = changes.get("state", issue.state)
        if state not in ("open", "closed"):
            raise invalid("Issue", "state")
        if state != issue.state:
            issue.state = state
            issue.closed_at = now() if state == "closed" else None
            tell(hub, repository, issue, "closed" if state == "closed" else "reopened", by)
        elif {"title", "body"} & changes.keys():
            tell(hub, repository, issue, "edited", by, changes={})


def add_labels(hub: Hub, repository: Repository, issue: Issue, names: Sequence[str], by: User) -> None:
    with hub.state.lock:
        for name in names:
            label = hub.state.label(repository, name)
            if label not in issue.labels:
                issue.labels.append(label)
                _tell_label(hub, repository, issue, by, labeled=label)


def remove_label(hub: Hub, repository: Repository, issue: Issue, name: str, by: User) -> None:
    with hub.state.lock:
        label = next((label for label in issue.labels if label.name.lower() == name.lower()), None)
        if label is None:
            raise not_found()
        issue.labels.remove(label)
        _tell_label(hub, repository, issue, by, unlabeled=label)


def set_labels(hub: Hub, repository: Repository, issue: Issue, names: Sequence[str], by: User) -> None:
    with hub.state.lock:
        wanted = {name.lower() for name in names}
        for label in [label for label in issue.labels if label.name.lower() not in wanted]:
            remove_label(hub, repository, issue, label.name, by)
        add_labels(hub, repository, issue, names, by)


def add_comment(hub: Hub, repository: Repository, issue: Issue, body: str, author: User) -> Comment:
    with hub.state.lock:
        _check_comment(body)
        comment = Comment(hub.state.next_id(), issue.number, author, body)
        issue.comments.append(comment)
        issue.updated_at = now()
        _tell_comment(hub, repository, comment, "created", author)
    return comment


def edit_comment(hub: Hub, repository: Repository, comment: Comment, body: str, by: User) -> None:
    with hub.state.lock:
        _check_comment(body)
        comment.body = body
        comment.updated_at = now()
        _tell_comment(hub, repository, comment, "edited", by)


def find_comment(repository: Repository, comment_id: int) -> Comment:
    for issue in repository.issues.values():
        for comment in issue.comments:
            if comment.id == comment_id:
                return comment
    raise not_found()


def tell(hub: Hub, repository: Repository, issue: Issue, action: str, by: User, **more: Any) -> None:
    """Tell of an issue, or of a pull request as of one."""
    if issue.pull:
        body = pull_json(issue, repository, hub.base_url)
        more = {"number": issue.number, "pull_request": body, **more}
        hub.tell("pull_request", repository, by, action=action, **more)
    else:
        body = issue_json(issue, repository, hub.base_url)
        hub.tell("issues", repository, by, action=action, issue=body, **more)


def _tell_label(hub: Hub, repository: Repository, issue: Issue, by: User, **changed: Label) -> None:
    """Tell of a label; the keyword is what happened to it."""
    ((action, label),) = changed.items()
    tell(hub, repository, issue, action, by, label=label_json(label, repository.full_name, hub.base_url))


def _tell_comment(hub: Hub, repository: Repository, comment: Comment, action: str, by: User) -> None:
    issue = repository.issues[comment.number]
    body = comment_json(comment, issue, repository, hub.base_url)
    about = issue_json(issue, repository, hub.base_url)
    more: Json = {"changes": {}} if action == "edited" else {}
    hub.tell("issue_comment", repository, by, action=action, issue=about, comment=body, **more)


def _check_comment(body: str) -> None:
    if not body.strip() or len(body) > BODY_LIMIT:
        raise invalid("IssueComment", "body")

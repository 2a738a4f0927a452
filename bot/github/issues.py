"""Issues and the conversation on issues and PRs: comments of ours and labels."""

from collections.abc import Callable
from contextlib import suppress
from urllib.parse import quote

from github import UnknownObjectException
from github.GithubException import GithubException
from github.Issue import Issue
from github.IssueComment import IssueComment
from github.Repository import Repository

from bot.github.limits import fit, fit_title
from store.scrub import scrub
from workers.ports import IssueInfo, StateLabel

_COLOURS: dict[StateLabel, tuple[str, str]] = {
    "working": ("fbca04", "acrouter is at work"),
    "review": ("1d76db", "acrouter has opened a pull request"),
    "merged": ("0e8a16", "acrouter's pull request was merged"),
    "failed": ("b60205", "acrouter found no fix that it may publish"),
}
_ENDINGS = frozenset({"merged", "failed", "none"})
_LONGEST_LABEL = 50


def read_issue(repository: Repository, number: int) -> IssueInfo:
    """Return an issue; a PR is one too."""
    _, data = repository.requester.requestJsonAndCheck("GET", f"{repository.url}/issues/{number}")
    return IssueInfo(
        number=number,
        title=data["title"],
        body=data.get("body") or "",
        state="closed" if data["state"] == "closed" else "open",
        author=(data.get("user") or {}).get("login", ""),
        labels=[label["name"] for label in data.get("labels") or [] if label.get("name")],
    )


def upsert_comment(
    repository: Repository, number: int, marker: str, body: str, *, known_id: int | None, login: Callable[[], str]
) -> int:
    """Write `body` into the one comment by `login` that begins with `marker`, made where there is none.

    A comment that already says it is left alone.
    """
    issue = _issue(repository, number)
    body = _outgoing(body, marker)
    comment = _known_comment(issue, known_id) or find_comment(issue, marker, login())
    if comment is None:
        return issue.create_comment(body).id
    if (comment.body or "").replace("\r\n", "\n").strip() != body.strip():
        comment.edit(body)
    return comment.id


def reply_once(repository: Repository, number: int, marker: str, body: str, login: Callable[[], str]) -> None:
    """Comment `body` unless a comment by `login` begins with `marker`."""
    issue = _issue(repository, number)
    if find_comment(issue, marker, login()) is None:
        issue.create_comment(_outgoing(body, marker))


def open_once(repository: Repository, marker: str, title: str, body: str, login: Callable[[], str]) -> int:
    """Open an issue and return its number, or that of an issue by `login` whose text begins with `marker`.

    It is looked for among the newest hundred of `login`'s own.
    """
    who = login()
    parameters = {"creator": who, "state": "all", "sort": "created", "direction": "desc", "per_page": 100}
    _, found = repository.requester.requestJsonAndCheck("GET", f"{repository.url}/issues", parameters=parameters)
    for issue in found:
        if (issue.get("user") or {}).get("login") == who and (issue.get("body") or "").lstrip().startswith(marker):
            return int(issue["number"])
    return repository.create_issue(fit_title(scrub(title)), _outgoing(body, marker)).number


def find_comment(issue: Issue, marker: str, login: str) -> IssueComment | None:
    """Return the oldest comment that begins with `marker` and is by `login`.

    Anybody can copy a marker, and further down one of our own comments may quote somebody who did.
    """
    return next(
        (
            comment
            for comment in issue.get_comments()
            if (comment.body or "").lstrip().startswith(marker)
            and comment.user is not None
            and comment.user.login == login
        ),
        None,
    )


def set_state_label(repository: Repository, number: int, state: StateLabel, trigger: str) -> None:
    """Have exactly the label of `state` among those of ours, which begin with `trigger`; on an ending that goes too.

    To GitHub a label is the same in every spelling, and people may have made it in another one.
    """
    url = f"{repository.url}/issues/{number}/labels"
    _, present = repository.requester.requestJsonAndCheck("GET", url, parameters={"per_page": "100"})
    names = {label["name"].casefold(): label["name"] for label in present}
    wanted = _label_of(state, trigger) if state != "none" else ""
    if wanted and wanted.casefold() not in names:
        _ensure_label(repository, wanted, *_COLOURS[state])
        repository.requester.requestJsonAndCheck("POST", url, input={"labels": [wanted]})
    obsolete = {_label_of(other, trigger) for other in _COLOURS} - {wanted}
    if state in _ENDINGS:
        obsolete.add(trigger)
    for name in sorted({name.casefold() for name in obsolete} & names.keys()):
        _remove_label(repository, url, names[name])


def _label_of(state: StateLabel, trigger: str) -> str:
    """GitHub takes no name of more than 50 characters."""
    return f"{trigger[: _LONGEST_LABEL - 1 - max(map(len, _COLOURS))]}:{state}"


def _known_comment(issue: Issue, known_id: int | None) -> IssueComment | None:
    """The comment that was written before, unless a person has deleted it."""
    if known_id is None:
        return None
    try:
        return issue.get_comment(known_id).complete()
    except UnknownObjectException:
        return None


def _ensure_label(repository: Repository, name: str, colour: str, description: str) -> None:
    try:
        repository.requester.requestJsonAndCheck("GET", f"{repository.url}/labels/{quote(name, safe='')}")
        return
    except UnknownObjectException:
        pass
    try:
        repository.create_label(name, colour, description)
    except GithubException as error:
        if error.status != 422:  # another process was quicker
            raise


def _remove_label(repository: Repository, url: str, name: str) -> None:
    with suppress(UnknownObjectException):  # a person was quicker
        repository.requester.requestJsonAndCheck("DELETE", f"{url}/{quote(name, safe='')}")


def _issue(repository: Repository, number: int) -> Issue:
    return Issue(repository.requester, url=f"{repository.url}/issues/{number}")


def _outgoing(body: str, marker: str) -> str:
    text = scrub(body)
    # At the top: it is looked for there, and survives a cut.
    return fit(text if text.startswith(marker) else f"{marker}\n{text}")

"""Plain pages for people: what a repository, an issue and a pull request hold, all of it shown as text from outside.

Nothing can be changed here, and the pages carry no script: what is written in an issue acts on nobody.
"""

import re
from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup

import templates
from bot.demo.hub import NAME
from bot.demo.hub.hub import Hub, not_found
from bot.demo.hub.issue_shapes import check_run_json, comment_json, issue_json, pull_json
from bot.demo.hub.shapes import diff_entry_json
from bot.demo.hub.state import Issue, Repository

_FOLDER = Path(templates.__file__).resolve().parent / "hub"
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
# The one kind of HTML that GitHub's comments commonly use and that can do no harm without attributes.
_FOLDING = re.compile(r"&lt;(/?)(details|summary)&gt;")
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")


def markdown(text: str | None) -> Markup:
    """Return Markdown from outside as HTML: raw HTML in it is shown and not obeyed, and images are not fetched."""
    html = _MARKDOWN.render(_COMMENT.sub("", text or ""))
    html = _FOLDING.sub(r"<\1\2>", html)
    return Markup(html)  # noqa: S704  (markdown-it escaped what came from outside)


def diff_class(line: str) -> str:
    return {"+": "add", "-": "del", "@": "hunk"}.get(line[:1], "same")


def environment() -> Environment:
    made = Environment(loader=FileSystemLoader(_FOLDER), undefined=StrictUndefined, autoescape=True, trim_blocks=True)
    made.filters |= {"markdown": markdown, "diff_class": diff_class}
    made.globals["hub_name"] = NAME
    return made


def routes(hub: Hub) -> APIRouter:
    router, base, pages = APIRouter(), hub.base_url, environment()

    def show(template: str, **values: object) -> Response:
        html = pages.get_template(template).render(**values)
        return HTMLResponse(html, headers={"Content-Security-Policy": _POLICY, "X-Content-Type-Options": "nosniff"})

    def find(owner: str, repo: str) -> Repository:
        found = hub.state.repository(f"{owner}/{repo}")
        if found is None:
            raise not_found()
        return found

    def find_issue(found: Repository, number: int, *, pull: bool) -> Issue:
        issue = found.issues.get(number)
        if issue is None or (issue.pull is not None) != pull:
            raise not_found()
        return issue

    def conversation(found: Repository, issue: Issue) -> dict[str, object]:
        return {
            "title": f"{issue.title} #{issue.number}",
            "repository": found.full_name,
            "issue": issue_json(issue, found, base),
            "comments": [comment_json(comment, issue, found, base) for comment in issue.comments],
        }

    @router.get("/")
    def index() -> Response:
        names = [found.full_name for found in hub.state.repositories.values()]
        return show("index.html", title="Repositories", repository="", repositories=names)

    @router.get("/{owner}/{repo}")
    def repository(owner: str, repo: str) -> Response:
        found = find(owner, repo)
        newest_first = list(reversed(found.issues.values()))
        return show(
            "repository.html",
            title=found.full_name,
            repository=found.full_name,
            clone_url=f"{base}/{found.full_name}.git",
            pulls=[issue_json(issue, found, base) for issue in newest_first if issue.pull],
            issues=[issue_json(issue, found, base) for issue in newest_first if not issue.pull],
            branches=found.bare.branches(),
        )

    @router.get("/{owner}/{repo}/issues/{number}")
    def issue(owner: str, repo: str, number: int) -> Response:
        found = find(owner, repo)
        shown = find_issue(found, number, pull=False)
        more: dict[str, object] = {"state": shown.state, "pull": None, "checks": [], "files": []}
        return show("issue.html", **conversation(found, shown), **more)

    @router.get("/{owner}/{repo}/pull/{number}.diff")
    def diff(owner: str, repo: str, number: int) -> Response:
        found = find(owner, repo)
        pull = find_issue(found, number, pull=True).pull
        if pull is None:
            raise not_found()
        return PlainTextResponse(found.bare.diff(pull.base_sha, pull.head_sha))

    @router.get("/{owner}/{repo}/pull/{number}")
    def pull_request(owner: str, repo: str, number: int) -> Response:
        found = find(owner, repo)
        shown = find_issue(found, number, pull=True)
        pull = shown.pull
        if pull is None:
            raise not_found()
        files = found.bare.changed_files(pull.base_sha, pull.head_sha)
        checks = [run for run in found.check_runs.values() if run.head_sha == pull.head_sha]
        return show(
            "issue.html",
            **conversation(found, shown),
            state="merged" if pull.merged_at else "draft" if pull.draft and shown.state == "open" else shown.state,
            pull=pull_json(shown, found, base),
            checks=[check_run_json(run, found, hub.state, base) for run in checks],
            files=[diff_entry_json(file, found.full_name, pull.head_sha, base) for file in files],
        )

    return router

"""The API's part for issues, labels, comments and reactions."""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from bot.demo.hub import issues
from bot.demo.hub.access import Access
from bot.demo.hub.hub import Hub, invalid, not_found, text_of
from bot.demo.hub.issue_shapes import comment_json, issue_json
from bot.demo.hub.requests import JsonBody, ObjectBody, page
from bot.demo.hub.shapes import label_json, user_json
from bot.demo.hub.state import Issue, Label, Repository, now

Json = dict[str, Any]
_REPO = "/repos/{owner}/{repo}"
_EITHER = ("issues", "pull_requests")
_REACTIONS = ("+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes")


def routes(hub: Hub, access: Access) -> APIRouter:
    router, base, state = APIRouter(), hub.base_url, hub.state

    @router.get(_REPO + "/issues")
    def listed(request: Request) -> Response:
        found = access.repository(request, "issues")
        query = request.query_params
        wanted, labels = query.get("state", "open"), {name for name in query.get("labels", "").split(",") if name}
        chosen = [
            issue
            for issue in reversed(found.issues.values())
            if wanted in ("all", issue.state) and labels <= {label.name for label in issue.labels}
        ]
        return page([issue_json(issue, found, base) for issue in chosen], request, base)

    @router.post(_REPO + "/issues")
    def create(request: Request, body: ObjectBody) -> Response:
        found = access.repository(request, "issues", write=True)
        issue = issues.create(hub, found, text_of(body, "title", "Issue"), str(body.get("body") or ""), state.bot)
        issues.add_labels(hub, found, issue, _names(body.get("labels", [])), state.bot)
        return JSONResponse(issue_json(issue, found, base), 201)

    @router.get(_REPO + "/issues/{number}")
    def one(request: Request, number: int) -> Json:
        found = access.repository(request, *_EITHER)
        return issue_json(issues.find(found, number), found, base)

    @router.patch(_REPO + "/issues/{number}")
    def edit(request: Request, number: int, body: ObjectBody) -> Json:
        found = access.repository(request, *_EITHER, write=True)
        issue = issues.find(found, number)
        issues.edit(hub, found, issue, body, state.bot)
        if "labels" in body:
            issues.set_labels(hub, found, issue, _names(body["labels"]), state.bot)
        return issue_json(issue, found, base)

    _label_routes(router, hub, access)
    _comment_routes(router, hub, access)
    _reaction_routes(router, hub, access)
    return router


def _label_routes(router: APIRouter, hub: Hub, access: Access) -> None:
    base, state = hub.base_url, hub.state

    def labels_answer(repository: Repository, issue: Issue) -> Response:
        return JSONResponse([label_json(label, repository.full_name, base) for label in issue.labels])

    @router.get(_REPO + "/labels")
    def all_labels(request: Request) -> Response:
        found = access.repository(request, *_EITHER)
        return page([label_json(label, found.full_name, base) for label in found.labels.values()], request, base)

    @router.get(_REPO + "/labels/{name}")
    def one_label(request: Request, name: str) -> Json:
        found = access.repository(request, *_EITHER)
        label = found.labels.get(name.lower())
        if label is None:
            raise not_found()
        return label_json(label, found.full_name, base)

    @router.post(_REPO + "/labels")
    def create_label(request: Request, body: ObjectBody) -> Response:
        found = access.repository(request, *_EITHER, write=True)
        name = text_of(body, "name", "Label")
        with state.lock:
            if name.lower() in found.labels:
                raise invalid("Label", "name", "already_exists")
            label = Label(state.next_id(), name, body.get("color", "ededed"), body.get("description") or "")
            found.labels[name.lower()] = label
        return JSONResponse(label_json(label, found.full_name, base), 201)

    @router.get(_REPO + "/issues/{number}/labels")
    def labels(request: Request, number: int) -> Response:
        found = access.repository(request, *_EITHER)
        return labels_answer(found, issues.find(found, number))

    @router.post(_REPO + "/issues/{number}/labels")
    def add_labels(request: Request, number: int, body: JsonBody) -> Response:
        found = access.repository(request, *_EITHER, write=True)
        issue = issues.find(found, number)
        issues.add_labels(hub, found, issue, _names(body), state.bot)
        return labels_answer(found, issue)

    @router.put(_REPO + "/issues/{number}/labels")
    def set_labels(request: Request, number: int, body: JsonBody) -> Response:
        found = access.repository(request, *_EITHER, write=True)
        issue = issues.find(found, number)
        issues.set_labels(hub, found, issue, _names(body), state.bot)
        return labels_answer(found, issue)

    @router.delete(_REPO + "/issues/{number}/labels/{name:path}")
    def remove_label(request: Request, number: int, name: str) -> Response:
        found = access.repository(request, *_EITHER, write=True)
        issue = issues.find(found, number)
        issues.remove_label(hub, found, issue, name, state.bot)
        return labels_answer(found, issue)


def _comment_routes(router: APIRouter, hub: Hub, access: Access) -> None:
    base, state = hub.base_url, hub.state

    @router.get(_REPO + "/issues/{number}/comments")
    def comments(request: Request, number: int) -> Response:
        found = access.repository(request, *_EITHER)
        issue = issues.find(found, number)
        return page([comment_json(comment, issue, found, base) for comment in issue.comments], request, base)

    @router.post(_REPO + "/issues/{number}/comments")
    def add_comment(request: Request, number: int, body: ObjectBody) -> Response:
        found = access.repository(request, *_EITHER, write=True)
        issue = issues.find(found, number)
        comment = issues.add_comment(hub, found, issue, text_of(body, "body", "IssueComment"), state.bot)
        return JSONResponse(comment_json(comment, issue, found, base), 201)

    @router.get(_REPO + "/issues/comments/{comment_id}")
    def one_comment(request: Request, comment_id: int) -> Json:
        found = access.repository(request, *_EITHER)
        comment = issues.find_comment(found, comment_id)
        return comment_json(comment, found.issues[comment.number], found, base)

    @router.patch(_REPO + "/issues/comments/{comment_id}")
    def edit_comment(request: Request, comment_id: int, body: ObjectBody) -> Json:
        found = access.repository(request, *_EITHER, write=True)
        comment = issues.find_comment(found, comment_id)
        issues.edit_comment(hub, found, comment, text_of(body, "body", "IssueComment"), state.bot)
        return comment_json(comment, found.issues[comment.number], found, base)

    @router.delete(_REPO + "/issues/comments/{comment_id}")
    def delete_comment(request: Request, comment_id: int) -> Response:
        found = access.repository(request, *_EITHER, write=True)
        with state.lock:
            comment = issues.find_comment(found, comment_id)
            found.issues[comment.number].comments.remove(comment)
        return Response(status_code=204)


def _reaction_routes(router: APIRouter, hub: Hub, access: Access) -> None:
    base, state = hub.base_url, hub.state

    @router.post(_REPO + "/issues/comments/{comment_id}/reactions")
    def react_to_comment(request: Request, comment_id: int, body: ObjectBody) -> Response:
        found = access.repository(request, *_EITHER, write=True)
        issues.find_comment(found, comment_id)
        return reaction(body)

    @router.post(_REPO + "/issues/{number}/reactions")
    def react(request: Request, number: int, body: ObjectBody) -> Response:
        found = access.repository(request, *_EITHER, write=True)
        issues.find(found, number)
        return reaction(body)

    def reaction(body: Json) -> Response:
        if body.get("content") not in _REACTIONS:
            raise invalid("Reaction", "content")
        made = {"id": state.next_id(), "content": body["content"], "created_at": now()}
        return JSONResponse({**made, "node_id": f"REA_{made['id']}", "user": user_json(state.bot, base)}, 201)


def _names(body: Any) -> list[str]:
    """Return label names out of a bare list, or an object's `labels`, of names or of objects with a name."""
    labels = body.get("labels", []) if isinstance(body, dict) else body
    if not isinstance(labels, list):
        raise invalid("Label", "labels")
    names = [label.get("name") if isinstance(label, dict) else label for label in labels]
    if not all(isinstance(name, str) and name for name in names):
        raise invalid("Label", "name")
    return [str(name) for name in names]

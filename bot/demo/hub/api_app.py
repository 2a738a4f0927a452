"""The API's part for the App: itself, its installation, tokens and webhook deliveries."""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from bot.demo.hub.access import Access
from bot.demo.hub.hub import Hub, not_found
from bot.demo.hub.requests import ObjectBody, page
from bot.demo.hub.shapes import EVENTS, app_json, public_user_json, repository_json, user_json
from bot.demo.hub.state import Token
from bot.demo.hub.webhooks import Delivery

Json = dict[str, Any]


def routes(hub: Hub, access: Access) -> APIRouter:
    router, state, base = APIRouter(), hub.state, hub.base_url

    def owner() -> Json:
        first = next(iter(state.repositories.values()), None)
        return user_json(first.owner if first else state.bot, base)

    def installation() -> Json:
        account = owner()
        return {
            "id": state.installation_id,
            "app_id": state.app_id,
            "app_slug": state.slug,
            "account": account,
            "target_id": account["id"],
            "target_type": "User",
            "repository_selection": "all",
            "permissions": dict(state.permissions),
            "events": list(EVENTS),
            "single_file_name": None,
            "access_tokens_url": f"{base}/app/installations/{state.installation_id}/access_tokens",
            "repositories_url": f"{base}/installation/repositories",
            "html_url": f"{base}/settings/installations/{state.installation_id}",
            "created_at": state.created_at,
            "updated_at": state.created_at,
            "suspended_by": None,
            "suspended_at": None,
        }

    def check_installation(installation_id: int) -> None:
        if installation_id != state.installation_id:
            raise not_found()

    def delivery(delivery_id: int) -> Delivery:
        for found in hub.sender.deliveries:
            if found.id == delivery_id:
                return found
        raise not_found()

    @router.get("/app")
    def app(request: Request) -> Json:
        access.app(request)
        return {**app_json(state, base, owner()), "installations_count": 1}

    @router.get("/app/installations")
    def installations(request: Request) -> Response:
        access.app(request)
        return page([installation()], request, base)

    @router.get("/app/installations/{installation_id}")
    def one_installation(request: Request, installation_id: int) -> Json:
        access.app(request)
        check_installation(installation_id)
        return installation()

    @router.post("/app/installations/{installation_id}/access_tokens")
    def mint(request: Request, installation_id: int, body: ObjectBody) -> Response:
        access.app(request)
        check_installation(installation_id)
        return JSONResponse(_token_json(access.mint(body), hub), 201)

    @router.get("/app/hook/deliveries")
    def deliveries(request: Request) -> Response:
        access.app(request)
        return page([found.as_json() for found in reversed(hub.sender.deliveries)], request, base)

    @router.get("/app/hook/deliveries/{delivery_id}")
    def one_delivery(request: Request, delivery_id: int) -> Json:
        access.app(request)
        found = delivery(delivery_id)
        exchange = {
            "request": {"headers": {}, "payload": found.payload},
            "response": {"headers": {}, "payload": ""},
        }
        return {**found.as_json(), **exchange}

    @router.post("/app/hook/deliveries/{delivery_id}/attempts")
    def redeliver(request: Request, delivery_id: int) -> Response:
        access.app(request)
        hub.sender.redeliver(delivery(delivery_id))
        return JSONResponse({}, 202)

    @router.get("/installation/repositories")
    def repositories(request: Request) -> Response:
        token = access.token(request)
        seen = [r for r in state.repositories.values() if token.allows("metadata", write=False, repository_id=r.id)]
        return page([repository_json(found, base) for found in seen], request, base, wrap="repositories")

    @router.get("/users/{login}")
    def user(request: Request, login: str) -> Json:
        access.token(request)
        found = state.users.get(login.lower())
        if found is None:
            raise not_found()
        return public_user_json(found, base, state.created_at)

    @router.get("/rate_limit")
    def rate_limit() -> Json:
        core = {"limit": 5000, "remaining": 5000, "used": 0, "reset": 0}
        return {"resources": {"core": core, "search": core}, "rate": core}

    @router.get("/repos/{owner}/{repo}/installation")
    def repository_installation(request: Request, owner: str, repo: str) -> Json:
        access.app(request)
        if state.repository(f"{owner}/{repo}") is None:
            raise not_found()
        return installation()

    return router


def _token_json(token: Token, hub: Hub) -> Json:
    answer: Json = {
        "token": token.value,
        "expires_at": token.expires_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "permissions": dict(token.permissions),
        "repository_selection": "all" if token.repository_ids is None else "selected",
    }
    if token.repository_ids is not None:
        chosen = [found for found in hub.state.repositories.values() if found.id in token.repository_ids]
        answer["repositories"] = [repository_json(found, hub.base_url) for found in chosen]
    return answer

"""What the stateful GitHub lacks, answered here; each answer of ours is held against GitHub's description."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bot.demo.hub.shapes import user_json
from bot.demo.hub.state import User, now
from tests.support.github.actions_routes import ActionsRoutes
from tests.support.github.content_routes import ContentRoutes
from tests.support.github.mirror import Hosted
from tests.support.github.pull_routes import PullRoutes
from tests.support.github.telling import Telling
from tests.support.github.wire import Request, Response, as_json, error, page

if TYPE_CHECKING:
    from tests.support.github.proxy import Proxy

Json = Any
Route = Callable[[Request, Hosted, str], Response | None]
_REPOSITORY = re.compile(r"/repos/([^/]+/[^/]+)(/.*)")


class Lacking:
    """The routes; `answer` gives None for what the stateful GitHub does itself."""

    def __init__(self, proxy: "Proxy") -> None:
        self._proxy = proxy
        self.telling = Telling(proxy)
        pulls, actions = PullRoutes(proxy, self.telling), ActionsRoutes(proxy, self.telling)
        contents = ContentRoutes(proxy, self.telling)
        self._routes: list[tuple[str, re.Pattern[str], Route]] = [
            (method, re.compile(pattern), route)
            for method, pattern, route in (
                ("POST", r"/git/refs", contents.make_ref),
                ("PUT", r"/contents/(.+)", contents.put_file),
                ("GET", r"/commits/([0-9a-f]{40})", contents.commit),
                ("POST", r"/pulls", pulls.create_pull),
                ("PATCH", r"/pulls/(\d+)", pulls.patch_pull),
                ("PUT", r"/pulls/(\d+)/merge", pulls.merge_pull),
                ("GET", r"/pulls/(\d+)/files", pulls.pull_files),
                ("GET", r"/pulls/(\d+)/commits", pulls.pull_commits),
                ("GET", r"/actions/runs", actions.runs),
                ("GET", r"/actions/runs/(\d+)", actions.run),
                ("GET", r"/actions/runs/(\d+)/jobs", actions.jobs),
                ("GET", r"/actions/jobs/(\d+)", actions.job),
                ("GET", r"/actions/jobs/(\d+)/logs", actions.log),
                ("POST", r"/actions/runs/(\d+)/rerun-failed-jobs", actions.rerun),
                ("GET", r"/check-suites/(\d+)", actions.suite),
                ("POST", r"/issues/(?:comments/)?(\d+)/reactions", self._react),
            )
        ]
        self._reactions = 0

    def answer(self, request: Request) -> Response | None:
        if request.path.startswith("/app/hook/deliveries"):
            return self._deliveries(request)
        found = _REPOSITORY.fullmatch(request.plain_path)
        hosted = self._proxy.find(found[1]) if found else None
        if found is None or hosted is None:
            return None
        for method, pattern, route in self._routes:
            if method == request.method and (match := pattern.fullmatch(found[2])):
                return route(request, hosted, match[1] if match.groups() else "")
        return None

    def _react(self, request: Request, hosted: Hosted, _: str) -> Response | None:
        self._reactions += 1
        bot = user_json(User(1, "acrouter[bot]", "Bot"), self._proxy.base_url)
        made = {"id": self._reactions, "node_id": f"REA_{self._reactions}", "user": bot}
        return as_json(201, {**made, "content": (request.json() or {})["content"], "created_at": now()})

    def _deliveries(self, request: Request) -> Response:
        allowed = self._proxy.forward(Request("GET", "/app", "", request.headers, b""))
        if allowed.status != 200:
            return allowed
        tail = request.path.removeprefix("/app/hook/deliveries").strip("/").split("/")
        newest_first = self._proxy.sender.deliveries[::-1]
        if not tail[0]:
            return page(request, [delivery.as_json() for delivery in newest_first])
        chosen = [delivery for delivery in newest_first if str(delivery.id) == tail[0]]
        if not chosen:
            return error(404, "Not Found")
        if tail[1:] == ["attempts"]:
            self._proxy.sender.redeliver(chosen[0])
            return as_json(202, {})
        exchange = {
            "request": {"headers": {}, "payload": chosen[0].payload},
            "response": {"headers": {}, "payload": ""},
        }
        return as_json(200, {**chosen[0].as_json(), **exchange})

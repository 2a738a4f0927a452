"""Faults that a test lets GitHub have: a wrong answer, a wait, a broken connection, an answer lost after the work."""

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Answer:
    """Answers this and does nothing."""

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Reset:
    """Breaks the connection; with `after_work` only once the request has been carried out."""

    after_work: bool = False


@dataclass(frozen=True)
class AfterWork:
    """Carries the request out and then answers this, as a proxy does that times out."""

    answer: Answer


@dataclass(frozen=True)
class Hold:
    """Carries the request out when the gate opens. `reached` is set as soon as somebody waits there."""

    gate: threading.Event = field(default_factory=threading.Event)
    reached: threading.Event = field(default_factory=threading.Event)
    timeout_s: float = 60.0


Action = Answer | Reset | AfterWork | Hold


@dataclass
class Fault:
    """An action for requests of a method (`*`: any) whose path matches, for the next `times` of them (None: all)."""

    method: str
    pattern: re.Pattern[str]
    action: Action
    times: int | None = 1
    hits: int = 0

    def matches(self, method: str, path: str) -> bool:
        if self.times is not None and self.hits >= self.times:
            return False
        return self.method in ("*", method) and self.pattern.search(path) is not None


class Faults:
    """The faults that wait for their requests; the first that matches is used."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._lock = threading.Lock()

    def add(self, method: str, path_regex: str, action: Action, *, times: int | None = 1) -> Fault:
        fault = Fault(method.upper(), re.compile(path_regex), action, times)
        with self._lock:
            self._faults.append(fault)
        return fault

    def clear(self) -> None:
        with self._lock:
            for fault in self._faults:
                if isinstance(fault.action, Hold):
                    fault.action.gate.set()
            self._faults.clear()

    def take(self, method: str, path: str) -> Action | None:
        with self._lock:
            for fault in self._faults:
                if fault.matches(method, path):
                    fault.hits += 1
                    return fault.action
        return None


# What GitHub says when it refuses, for tables of faults
# (https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api).
BAD_CREDENTIALS = Answer(401, {"message": "Bad credentials", "documentation_url": "https://docs.github.com/rest"})
SECONDARY_LIMIT = Answer(
    403,
    {
        "message": "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.",
        "documentation_url": "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api",
    },
    {"Retry-After": "1"},
)
NOT_FOUND = Answer(404, {"message": "Not Found", "documentation_url": "https://docs.github.com/rest"})
CONFLICT = Answer(409, {"message": "Conflict", "documentation_url": "https://docs.github.com/rest"})
VALIDATION_FAILED = Answer(
    422, {"message": "Validation Failed", "errors": [], "documentation_url": "https://docs.github.com/rest"}
)
SERVER_ERROR = Answer(500, {"message": "Server Error"})
BAD_GATEWAY = Answer(502, {"message": "Server Error"})

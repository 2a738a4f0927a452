"""Scripted models that a test can hold in the middle of their work."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

from bot.demo.scripted import ScriptedEndpoint
from bot.demo.scripted.server import RequestError

_LONGEST_S = 60.0
"""Shorter than the model timeout of the installations that tests start."""


class HeldModels(ScriptedEndpoint):
    """Scripted models that answer at once, but for a block of `held`."""

    _held: "_Hold | None" = None

    _dead: str | None = None
    """None: nobody is; empty: the next model that is asked."""

    def complete(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self._maybe_die(str(request.get("model")))
        hold = self._held
        number = sum(message.get("role") == "assistant" for message in request.get("messages", ()))
        if hold is not None and number >= hold.after:
            hold.reached.set()
            hold.expired |= not hold.released.wait(_LONGEST_S)
        return super().complete(request)

    @contextmanager
    def held(self, after: int = 1) -> Iterator["_Hold"]:
        """Let calls wait that have `after` answers behind them, until the block ends or `release` is called."""
        self._held = _Hold(after)
        try:
            yield self._held
        finally:
            self._held.release()
            self._held = None

    @contextmanager
    def first_is_dead(self) -> Iterator[None]:
        """Let whichever model is asked first answer with HTTP 500 until the block ends."""
        self._dead = ""
        try:
            yield
        finally:
            self._dead = None

    def _maybe_die(self, model: str) -> None:
        if self._dead == "":
            self._dead = model
        if self._dead == model:
            raise RequestError(HTTPStatus.INTERNAL_SERVER_ERROR, "this scripted model died")


class _Hold:
    def __init__(self, after: int) -> None:
        self.after = after
        self.reached = threading.Event()
        self.released = threading.Event()
        self.expired = False
        """A call waited in vain."""

    def release(self) -> None:
        self.released.set()

    def wait_until_reached(self, timeout_s: float = 90.0) -> None:
        """Wait until a model is in the middle of its work."""
        assert self.reached.wait(timeout_s), f"no model was called within {timeout_s} s"

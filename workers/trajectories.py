"""Trajectories as they are stored: without secrets, and without what databases refuse."""

from collections.abc import Mapping
from typing import Any

from store.scrub import scrub_json


class GrowingTrajectory:
    """Scrubs one attempt's trajectory after each of its steps, each message once."""

    def __init__(self) -> None:
        self._messages: list[Any] = []

    def scrubbed(self, trajectory: Mapping[str, Any]) -> dict[str, Any]:
        """Return `trajectory` to be stored. It must be the last one with nothing but further messages."""
        messages = trajectory.get("messages", [])
        self._messages += [scrub_json(message) for message in messages[len(self._messages) :]]
        rest = {scrub_json(name): scrub_json(part) for name, part in trajectory.items() if name != "messages"}
        return {**rest, "messages": list(self._messages)}

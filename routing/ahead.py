"""Asks the slow voters before a decision, outside of the router's lock."""

from collections.abc import Callable, Iterable
from typing import Protocol, runtime_checkable

import structlog

from routing.types import Memory, Pool, RoutingTask, Vote, Voter

_log = structlog.get_logger(__name__)


@runtime_checkable
class SlowVoter(Protocol):
    """A voter whose opinion takes long, by a network call for example. Its `vote` reads `RoutingTask.votes_ahead`."""

    name: str

    def prepare(self, task: RoutingTask, memory: Memory, pool: Pool) -> Callable[[], Vote]:
        """Return a call that needs nothing of the router and gives the vote. Quick: it runs within the lock."""
        ...


def slow(voters: Iterable[Voter]) -> tuple[SlowVoter, ...]:
    """Return the slow ones of the voters."""
    return tuple(voter for voter in voters if isinstance(voter, SlowVoter))


def prepare(
    voters: Iterable[SlowVoter], task: RoutingTask, memory: Memory, pool: Pool
) -> dict[str, Callable[[], Vote]]:
    """Return the slow voters' calls by name. Within the router's lock."""
    calls = {}
    for voter in voters:
        try:
            calls[voter.name] = voter.prepare(task, memory, pool)
        except Exception as error:  # noqa: BLE001  (one broken voter must not stop the others)
            calls[voter.name] = _failing(voter.name, error)
    return calls


def ask(calls: dict[str, Callable[[], Vote]]) -> dict[str, Vote]:
    """Return what the calls give, abstentions for those that fail. Outside of the router's lock."""
    votes = {}
    for name, call in calls.items():
        try:
            votes[name] = call()
        except Exception as error:  # noqa: BLE001  (see above)
            votes[name] = _failing(name, error)()
    return votes


def _failing(name: str, error: Exception) -> Callable[[], Vote]:
    _log.warning("voter_failed", voter=name, exc_info=error)
    return lambda: Vote(name, {}, reason=f"It failed ({type(error).__name__}) and abstains.")

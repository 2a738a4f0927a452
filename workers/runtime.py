"""What one worker process works with, put together once at its start by the command line."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from routing.pool import ModelPool
from sandbox.types import Backend
from store.database import Database
from store.settings import Settings
from workers.baselines import Baselines
from workers.brain import Brain
from workers.breakers import Breakers, EndpointBreakers
from workers.ports import DeliveryHandler, Forge, Queue


@dataclass(frozen=True)
class Runtime:
    """The process's settings, services and seams."""

    settings: Settings
    database: Database
    queue: Queue
    forge: Forge | None
    """None where only local tasks are worked on."""
    backend: Backend
    pool: ModelPool
    brain: Brain
    name: str
    """Names this process in leases and heartbeats: host and process id."""
    breakers: Breakers = field(default_factory=EndpointBreakers)
    stopping: threading.Event = field(default_factory=threading.Event)
    """Set when the process must end: what is held is handed back."""

    @property
    def baselines(self) -> Baselines:
        return Baselines(self.settings.data_dir / "baselines")

    @property
    def mirrors_dir(self) -> Path:
        return self.settings.data_dir / "mirrors"


@dataclass(frozen=True)
class Worker:
    """A runtime with its handler of deliveries."""

    runtime: Runtime
    handle_delivery: DeliveryHandler
    chores: Sequence[Callable[[], object]] = ()
    """What is done beside the reconciler's round, each quick when there is nothing to do."""

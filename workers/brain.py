"""The router of one process, shared by its threads and kept level with the database."""

import threading
from collections.abc import Collection, Sequence

from sqlmodel import Session

from routing import Evidence, Router, RoutingDecision, RoutingTask
from routing.evidence_store import EvidenceStore
from store.database import Database
from store.tables import Attempt, Task
from store.types import utc_now
from workers.run import Run


class Brain:
    """Decides with all that every process has learnt so far."""

    def __init__(self, router: Router, database: Database) -> None:
        self._router = router
        self._store = EvidenceStore(router)
        self._database = database
        self._lock = threading.Lock()

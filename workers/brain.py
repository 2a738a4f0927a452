"""The router of one process, shared by its threads and kept level with the database."""

import threading
from collections.abc import Collection, Mapping
from dataclasses import replace

from sqlmodel import Session

from routing import Evidence, Router, RoutingDecision, RoutingTask
from routing.errors import NoModelLeft
from routing.evidence_store import EvidenceFeed, save, trim
from store.database import Database
from store.tables import Attempt
from store.types import utc_now


class Brain:
    """Decides with all that any process of this installation has learnt so far."""

    def __init__(self, router: Router, database: Database, capacity: int) -> None:
        """`capacity`: entries that the memory's table keeps, those of the newest attempts."""
        self.router = router
        self._capacity = capacity
        self._feed = EvidenceFeed(database)
        self._lock = threading.Lock()

    def catch_up(self) -> None:
        """Take in what other processes wrote. Do not call it within a session: it opens one."""
        with self._lock:
            self._feed.catch_up(self.router)

    def choose(
        self,
        task: RoutingTask,
        *,
        pinned: str = "",
        allow: Collection[str] | None = None,
        deny: Collection[str] = (),
        resting: Collection[str] = (),
        budget_usd: float | None = None,
        explore: bool = True,
    ) -> RoutingDecision:
        """Decide on the first model. `resting`: models whose endpoints fail.

        Raises:
            NoModelLeft: no model may be used; the message says why.
            PoolError: a name is not in the pool.
        """
        self.catch_up()
        return self.router.decide(
            task,
            pinned=pinned or None,
            allow=allow,
            deny=deny,
            exclude=resting,
            budget_usd=budget_usd,
            explore=explore,
        )

    def escalate(
        self,
        task: RoutingTask,
        tried: Mapping[str, float],
        *,
        allow: Collection[str] | None = None,
        deny: Collection[str] = (),
        resting: Collection[str] = (),
        budget_usd: float,
    ) -> RoutingDecision | None:
        """Decide on the next model after failures, or return None where stopping is worth more.

        `tried` maps each model that had its chance to its score; `resting`: models whose endpoints fail. No
        exploration: an escalation has the money of one task and the failures on it to go by.
        """
        self.catch_up()
        try:
            left = self.router.decide(
                task, exclude=(*tried, *resting), allow=allow, deny=deny, budget_usd=budget_usd, explore=False
            )
        except NoModelLeft:
            return None
        step = self.router.escalate(task, left, tried, budget_usd)
        if step is None:
            return None
        failures = ", ".join(f"{model} ({score:.2f})" for model, score in tried.items())
        return replace(
            left,
            ranked=(step, *(line for line in left.ranked if line.model != step.model)),
            reasons=(f"Tried before on this task, with their scores: {failures}.", *left.reasons),
        )

    def learn(self, task: RoutingTask, attempt: Attempt) -> Evidence:
        """Take an attempt with its verdict in, and return the evidence for `keep`. Not within a session."""
        assert attempt.score is not None
        return self.router.observe(
            Evidence(
                key=evidence_key(attempt),
                task_key=task.key,
                dimension=task.dimension,
                model=attempt.model,
                score=attempt.score,
                cost_usd=attempt.cost_usd,
                final=False,
                at=attempt.finished_at or utc_now(),
                text=task.text,
                repository=task.repository,
                language=task.language,
                title=task.title,
                link=task.link,
            )
        )

    def keep(self, session: Session, evidence: Evidence) -> None:
        """Write learnt evidence into the memory's table, which keeps the newest attempts at its capacity."""
        save(session, evidence, self.router.encoder)
        trim(session, self._capacity)


def evidence_key(attempt: Attempt) -> str:
    """Return the key under which an attempt stands in the memory."""
    return f"attempt:{attempt.id}"

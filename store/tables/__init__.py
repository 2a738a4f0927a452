"""The tables. The database is the truth: Redis, FAISS, containers and Celery's state are rebuilt from it.

Money in `ledger` is a whole number of micro-dollars, rounded up; times are aware UTC datetimes.
"""

from store.tables.github import ConfigurationFile, Delivery, Installation, Repository, Sweep
from store.tables.memory import MemoryEntry
from store.tables.money import CapOverride, Ledger
from store.tables.operation import ApiToken, AuditEntry, DashboardSession, Heartbeat, ModelEndpoint
from store.tables.tasks import History, Task
from store.tables.work import Attempt, Decision, Outcome, Verification

__all__ = [
    "ApiToken",
    "Attempt",
    "AuditEntry",
    "CapOverride",
    "ConfigurationFile",
    "DashboardSession",
    "Decision",
    "Delivery",
    "Heartbeat",
    "History",
    "Installation",
    "Ledger",
    "MemoryEntry",
    "ModelEndpoint",
    "Outcome",
    "Repository",
    "Sweep",
    "Task",
    "Verification",
]

"""Embeds what waits for it in the memory: rows of another encoder, and rows that an outcome was the first to make."""

import time

from routing.evidence_store import OVERLAP_US, reencode
from routing.types import Encoder
from store.database import Database


class Reencoding:
    """A worker's chore: a few rows each time, and only what was written since all were done."""

    def __init__(self, database: Database, encoder: Encoder) -> None:
        self._database = database
        self._encoder = encoder
        self._done_to = -1
        """A revision, see `routing.evidence_store`."""

    def __call__(self) -> None:
        began = time.time_ns() // 1000
        if not reencode(self._database, self._encoder, since=self._done_to):
            self._done_to = began - OVERLAP_US

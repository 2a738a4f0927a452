"""Embeds what waits for it in the memory: rows of another encoder, and rows that an outcome was the first to make."""

import time

from routing.evidence_store import OVERLAP_US
from routing.reencoding import reencode, waits_for_encoder
from routing.types import Encoder
from store.database import Database
from workers.sweeps import release, take_turn

_TURN_S = 600.0
"""A batch takes less; where a worker is lost with it, or the encoder is away, the next one waits for so long."""


class Reencoding:
    """A worker's chore: a few rows each time, one worker at a time, and only what is new since all were done."""

    def __init__(self, database: Database, encoder: Encoder) -> None:
        self._database = database
        self._encoder = encoder
        self._done_to = -1
        """A revision, see `routing.evidence_store`."""
        self._refused: set[int] = set()
        """Rows whose text the encoder does not take; after a start they are tried again."""

    def __call__(self) -> None:
        began = time.time_ns() // 1000
        if not waits_for_encoder(self._database, self._encoder, since=self._done_to, without=self._refused):
            self._done_to = began - OVERLAP_US
            return
        turn = take_turn(self._database, "reencoding", _TURN_S)
        if turn is not None:
            reencode(self._database, self._encoder, since=self._done_to, refused=self._refused)
            release(self._database, turn)

"""A chore: what this machine keeps to be quick is looked through, now and then."""

import socket

import structlog

from sandbox.eviction import evict_mirrors, tidy_mirrors
from sandbox.types import CacheLimits
from workers.runtime import Runtime
from workers.sweeps import complete, take_turn

_EVERY_S = 3600.0
_TIDYING_S = 30.0
"""The process looks for lost tasks only afterwards."""
_log = structlog.get_logger(__name__)


def evict_caches(runtime: Runtime) -> None:
    """Remove superfluous images of set-ups and mirrors, and tidy the others, where it is this machine's turn."""
    turn = take_turn(runtime.database, f"cache {socket.gethostname()}"[:50], _EVERY_S)
    if turn is None:
        return
    limits = CacheLimits(runtime.settings.cache_bytes, runtime.settings.cache_days * 86_400)
    images = runtime.backend.evict(limits)
    mirrors = evict_mirrors(runtime.mirrors_dir, limits)
    for words in tidy_mirrors(runtime.mirrors_dir, within_s=_TIDYING_S):
        _log.warning("cache.mirror_untidy", error=words)
    complete(runtime.database, turn)
    if images or mirrors:
        _log.info("cache.evicted", images=images, mirrors=mirrors)

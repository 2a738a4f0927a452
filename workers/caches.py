"""A chore: what this machine keeps to be quick is looked through, now and then."""

import socket

import structlog

from sandbox.eviction import evict_mirrors
from sandbox.types import CacheLimits
from workers.runtime import Runtime
from workers.sweeps import complete, take_turn

_EVERY_S = 3600.0
_log = structlog.get_logger(__name__)


def evict_caches(runtime: Runtime) -> None:
    """Remove images of set-ups and mirrors that are superfluous, where it is this machine's turn."""
    turn = take_turn(runtime.database, f"cache {socket.gethostname()}"[:50], _EVERY_S)
    if turn is None:
        return
    limits = CacheLimits(int(runtime.settings.cache_gb * 1e9), runtime.settings.cache_days * 86_400)
    images = runtime.backend.evict(limits)
    mirrors = evict_mirrors(runtime.mirrors_dir, limits)
    complete(runtime.database, turn)
    if images or mirrors:
        _log.info("cache.evicted", images=images, mirrors=mirrors)

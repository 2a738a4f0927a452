"""The images that acrouter made, and when each was used last: what is superfluous is removed."""

import contextlib
import hashlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import docker.errors
from docker import APIClient

from sandbox.eviction import Kept, superfluous
from sandbox.named_locks import NamedLocks
from sandbox.types import CacheLimits

MADE_BY_LABEL = "acrouter.made-by"
"""Names the installation that made an image: others' images on the same daemon are left alone."""


class ImageCache:
    """The images of one installation. Its processes share the folder `records`; without one, age counts from making."""

    def __init__(self, instance: str, records: Path | None) -> None:
        self._instance = instance
        self._records = records

    @property
    def labels(self) -> Mapping[str, str]:
        """What an image is made with, to be found again."""
        return {MADE_BY_LABEL: self._instance}

    def note_use(self, image: str) -> None:
        """Remember that an image was used now; where that cannot be written down, it seems older than it is."""
        if self._records is not None:
            with contextlib.suppress(OSError):
                self._records.mkdir(parents=True, exist_ok=True)
                self._record(image).touch()

    def evict(self, api: APIClient, limits: CacheLimits, images: NamedLocks) -> int:
        """Remove superfluous images and return how many; one that a container was made from stays, and one whose lock
        somebody has: it is being made or looked for.
        """
        filters = {"label": [f"{MADE_BY_LABEL}={self._instance}"]}
        kept = [self._kept(api, image) for image in api.images(filters=filters)]
        count = 0
        for one in superfluous(kept, limits, time.time()):
            with images.if_free(one.name) as free:
                if not free or self._noted(one.name) > one.used_at:  # a task has taken it up since it was looked at
                    continue
                with contextlib.suppress(docker.errors.APIError):  # in use, or another image stands on it
                    api.remove_image(one.name, noprune=True)
                    count += 1
                    if self._records is not None:
                        self._record(one.name).unlink(missing_ok=True)
        return count

    def _kept(self, api: APIClient, image: Mapping[str, Any]) -> Kept:
        name = next(iter(image.get("RepoTags") or ()), image["Id"])
        used_at = max(float(image["Created"]), self._noted(name))
        # All but the last layer belong to the image that it was made on.
        layers = api.history(image["Id"])  # type: ignore[no-untyped-call]
        return Kept(name, int(layers[0]["Size"]), used_at)

    def _noted(self, image: str) -> float:
        """Return when an image was used last as far as that is written down, in seconds since the epoch."""
        if self._records is None:
            return 0.0
        try:
            return self._record(image).stat().st_mtime
        except OSError:
            return 0.0

    def _record(self, image: str) -> Path:
        assert self._records is not None
        return self._records / hashlib.sha256(image.encode()).hexdigest()[:32]

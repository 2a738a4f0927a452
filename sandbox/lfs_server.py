"""A repository's LFS server, asked by the batch API. What is not what its pointer says is not taken.

https://github.com/git-lfs/git-lfs/blob/main/docs/api/batch.md
"""

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import httpx
from pydantic import BaseModel, ValidationError

from sandbox.errors import CheckoutError, RemoteUnavailable
from sandbox.remotes import GitRemote

_ANSWER_LIMIT = 4 << 20
_MEDIA_TYPE = "application/vnd.git-lfs+json"
_PAUSE_S = 30.0
"""Without a byte, after which the server counts as gone."""


class Pointer(NamedTuple):
    """A file that stands elsewhere."""

    path: str
    blob: str
    """The pointer's own, in the tree."""
    oid: str
    """The file's SHA-256, in hexadecimal digits."""
    size: int
    """The file's, in bytes."""


class Download(BaseModel):
    """Where a file can be had, and the headers that this needs."""

    href: str
    header: dict[str, str] = {}


class _Actions(BaseModel):
    download: Download | None = None


class _Object(BaseModel):
    oid: str
    actions: _Actions = _Actions()


class _Answer(BaseModel):
    objects: list[_Object]


class LfsServer:
    """The server of one repository. Redirects are not followed: they would carry a request anywhere."""

    def __init__(self, remote: GitRemote, deadline: float) -> None:
        self._remote = remote
        self._scheme = urlsplit(remote.url).scheme
        self._deadline = deadline

    def ask(self, pointers: Sequence[Pointer]) -> Mapping[str, Download]:
        """Return where each file can be had, by its oid.

        Raises:
            RemoteUnavailable: waiting may help.
            CheckoutError: the answer is a refusal, or none.
        """
        url = self._remote.url.rstrip("/").removesuffix(".git") + ".git/info/lfs/objects/batch"
        objects = [{"oid": pointer.oid, "size": pointer.size} for pointer in pointers]
        body = {"operation": "download", "transfers": ["basic"], "hash_algo": "sha256", "objects": objects}
        auth = (self._remote.username, self._remote.token) if self._remote.token else None
        headers = {"Accept": _MEDIA_TYPE, "Content-Type": _MEDIA_TYPE}
        content = b"".join(self._pieces("POST", url, _ANSWER_LIMIT, json=body, headers=headers, auth=auth))
        try:
            answer = _Answer.model_validate_json(content)
        except ValidationError as error:
            raise CheckoutError("the server's answer cannot be read.") from error
        return {one.oid: one.actions.download for one in answer.objects if one.actions.download is not None}

    def download(self, source: Download, pointer: Pointer, file: Path) -> None:
        """Write a file.

        Raises:
            RemoteUnavailable: waiting may help.
            CheckoutError: it is refused, or is not the file that the pointer stands for.
        """
        scheme = source.href.partition("://")[0].lower()
        if scheme not in ("https", self._scheme):
            raise CheckoutError(f"the server sends us to {scheme!r}, which is not encrypted.")
        digest, size = hashlib.sha256(), 0
        with file.open("wb") as sink:
            for piece in self._pieces("GET", source.href, pointer.size, headers=source.header):
                digest.update(piece)
                size += len(piece)
                sink.write(piece)
        if (size, digest.hexdigest()) != (pointer.size, pointer.oid):
            raise CheckoutError("what the server gives is another file than the pointer says.")

    def _pieces(self, method: str, url: str, limit: int, **options: object) -> Iterator[bytes]:
        taken = 0
        try:
            with httpx.stream(method, url, timeout=_PAUSE_S, follow_redirects=False, **options) as response:  # type: ignore[arg-type]
                if response.status_code != httpx.codes.OK:
                    raise self._refusal(response.status_code)
                for piece in response.iter_bytes():
                    taken += len(piece)
                    if taken > limit:
                        raise CheckoutError(f"the server gives more than {limit} bytes.")
                    if time.monotonic() > self._deadline:
                        raise RemoteUnavailable("The LFS files cannot be fetched in time.")
                    yield piece
        except httpx.TransportError as error:
            raise RemoteUnavailable(f"The LFS files cannot be fetched: {error or type(error).__name__}") from error
        except (httpx.InvalidURL, httpx.DecodingError, httpx.StreamError, ValueError) as error:
            raise CheckoutError(f"the server's answer cannot be used ({type(error).__name__}).") from error

    def _refusal(self, status: int) -> CheckoutError:
        words = f"the server answers with HTTP {status}."
        temporary = status in (httpx.codes.REQUEST_TIMEOUT, httpx.codes.TOO_MANY_REQUESTS) or status >= 500
        return RemoteUnavailable(f"The LFS files cannot be fetched: {words}") if temporary else CheckoutError(words)

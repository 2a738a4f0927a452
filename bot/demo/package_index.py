"""Finds and downloads source distributions from the package index that pip is configured for.

pip itself is not used for it: `pip download` runs a source distribution's build code to learn its metadata, and that
code is not ours. The simple API is read instead (PEP 503, PEP 691), from pip's own index settings.
"""

import hashlib
import os
import re
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urldefrag, urljoin, urlsplit, urlunsplit

import httpx

from bot.demo.errors import DownloadError

DEFAULT_INDEX = "https://pypi.org/simple"
_ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
_LARGEST_SDIST_BYTES = 50_000_000


@dataclass(frozen=True)
class Sdist:
    """One source distribution: what to ask the index for, and the hash that it must have."""

    project: str
    version: str
    sha256: str


@dataclass(frozen=True)
class IndexSettings:
    """Where to look, from pip's configuration."""

    urls: tuple[str, ...] = (DEFAULT_INDEX,)
    certificates: str | None = None
    """Path of a CA bundle; None: the system's, or what SSL_CERT_FILE names."""


def pip_index_settings() -> IndexSettings:
    """Return pip's index settings: its environment variables first, then its configuration files."""
    values = _pip_configuration()
    for name in ("index-url", "extra-index-url", "cert"):
        if from_environment := os.environ.get("PIP_" + name.upper().replace("-", "_")):
            values[name] = from_environment
    urls = [values.get("index-url", DEFAULT_INDEX), *values.get("extra-index-url", "").split()]
    return IndexSettings(
        tuple(url.rstrip("/") for url in urls if urlsplit(url).scheme in ("http", "https")), values.get("cert")
    )


def fetch(sdist: Sdist, cache: Path, settings: IndexSettings | None = None) -> Path:
    """Return the path of the source distribution below `cache`, downloading it where it is missing.

    Raises:
        DownloadError: no index has it, none answers, or what came has another hash.
    """
    cached = cache / f"{sdist.project}-{sdist.version}-{sdist.sha256[:16]}.tar.gz"
    if cached.is_file() and _sha256(cached.read_bytes()) == sdist.sha256:
        return cached
    content = _download(sdist, settings or pip_index_settings())
    cache.mkdir(parents=True, exist_ok=True)
    # Several processes may fetch the same one: each writes its own file, and the last rename wins.
    with tempfile.NamedTemporaryFile(dir=cache, delete=False) as partial:
        partial.write(content)
    return Path(partial.name).replace(cached)


def _download(sdist: Sdist, settings: IndexSettings) -> bytes:
    problems = []
    with httpx.Client(verify=_verify(settings), follow_redirects=True, timeout=60) as client:
        for index in settings.urls:
            try:
                for url in _file_urls(client, index, sdist):
                    content = _read(client, url)
                    if _sha256(content) == sdist.sha256:
                        return content
                    problems.append(f"{_shown(url)} has another hash than the catalogue's")
                problems.append(f"{_shown(index)} has no file with this hash")
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                problems.append(f"{_shown(index)}: {type(error).__name__}")
    raise DownloadError(
        f"{sdist.project} {sdist.version} (sha256 {sdist.sha256[:16]}...) cannot be downloaded: "
        f"{'; '.join(problems) or 'pip names no http index'}. "
        "Check the network and pip's settings (`pip config list`), then run the command again."
    )


def _read(client: httpx.Client, url: str) -> bytes:
    content = bytearray()
    with client.stream("GET", url) as response:
        response.raise_for_status()
        for part in response.iter_bytes():
            content += part
            if len(content) > _LARGEST_SDIST_BYTES:
                raise DownloadError(f"{_shown(url)} is larger than {_LARGEST_SDIST_BYTES:,} bytes.")
    return bytes(content)


def _file_urls(client: httpx.Client, index: str, sdist: Sdist) -> Iterator[str]:
    """Yield the addresses that the index gives for files of the wanted hash."""
    name = re.sub(r"[-_.]+", "-", sdist.project).lower()  # PEP 503
    page = client.get(f"{index}/{name}/", headers={"Accept": _ACCEPT})
    page.raise_for_status()
    if "json" in page.headers.get("content-type", ""):
        files = page.json().get("files", ())
        links = [(str(file.get("url", "")), str(file.get("hashes", {}).get("sha256", ""))) for file in files]
    else:
        links = _html_links(page.text)
    for url, sha256 in links:
        if sha256 == sdist.sha256:
            yield urljoin(str(page.url), url)


def _html_links(text: str) -> list[tuple[str, str]]:
    links: list[tuple[str, str]] = []

    class Anchors(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            url, fragment = urldefrag(dict(attrs).get("href") or "")
            if tag == "a" and fragment.startswith("sha256="):
                links.append((url, fragment.removeprefix("sha256=")))

    Anchors().feed(text)
    return links


def _verify(settings: IndexSettings) -> bool | ssl.SSLContext:
    if not settings.certificates:
        return True
    try:
        return ssl.create_default_context(cafile=settings.certificates)
    except OSError as error:  # not there, or no certificates in it
        raise DownloadError(
            f"pip's setting `cert` names {settings.certificates}, which cannot be read as certificates: "
            f"{error.strerror}. Correct PIP_CERT or pip's configuration (`pip config list`)."
        ) from error


def _pip_configuration() -> dict[str, str]:
    """Return what `pip config list` says, the later (nearer) scope first; empty where pip is not installed."""
    try:
        listing = subprocess.run(
            [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, timeout=60, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return {}
    values: dict[str, str] = {}
    for scope in ("global", "install", ":env:"):
        for line in listing.splitlines():
            if match := re.fullmatch(rf"{re.escape(scope)}\.([\w-]+)='(.*)'", line):
                values[match[1]] = match[2].replace("\\n", " ")
    return values


def _shown(url: str) -> str:
    """Return an address without the user name and password that it may carry."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()

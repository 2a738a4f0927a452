"""Submodules of a tree: which there are, and where they may be fetched from.

Of `.gitmodules` nothing reaches git but URLs that were checked here.
"""

import contextlib
import posixpath
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from sandbox.bare import LISTING_LIMIT, SHA, BareRepository
from sandbox.errors import CheckoutError, RemoteRefused, RemoteUnavailable
from sandbox.git import TOO_SLOW, GitFailedError, check_remote
from sandbox.remotes import GitRemote

FETCHED = "refs/acrouter/submodules"
"""Below it stands each submodule's commit that was fetched."""
MOST = 20
"""Submodules of one tree; of more, the first ones."""
_PACK_LIMIT = 512_000_000
"""Bytes of one submodule, packed, at its one commit."""
_GITMODULES = 1_000_000
"""Bytes of `.gitmodules` that are looked at."""
_SECTION = re.compile(r'\[submodule "(?:[^"\\\n]|\\.)*"\]')
_VALUE = re.compile(r"(path|url)\s*=\s*(.*)")
"""Of a line without the space at its ends."""
_TEMPORARY = re.compile(
    r"Could not resolve|[Cc]onnection (?:refused|reset|timed out)|[Ff]ailed to connect|Couldn't connect|timed out"
    r"|Operation too slow|Empty reply|RPC failed|returned error: (?:408|429|5\d\d)"
)
"""What git and curl say where asking again may help."""
_SSH = re.compile(r"(?:ssh://)?[\w.-]+@([\w.-]+)[:/](?!/)(.+)")


@dataclass(frozen=True)
class Submodule:
    path: str
    sha: str
    url: str
    """As the repository writes it; empty where it does not say."""


def submodules_of(repository: BareRepository, tree: str) -> Sequence[Submodule]:
    """Return the submodules of a commit or tree, without those that they have themselves."""
    with tempfile.TemporaryDirectory(prefix="acrouter-tree-") as folder:
        listing = Path(folder) / "listing"
        repository.git("ls-tree", "-r", "-z", "--full-tree", tree, stdout_to=listing, file_limit=LISTING_LIMIT)
        listed = listing.read_bytes().decode("utf-8", "surrogateescape")
    links = {}
    for line in listed.split("\0")[:-1]:
        attributes, path = line.split("\t", 1)
        mode, _, sha = attributes.split(" ")
        if mode == "160000":
            links[path] = sha
    if not links:
        return ()
    try:
        text = repository.git("cat-file", "blob", f"{tree}:.gitmodules")[:_GITMODULES].decode("utf-8", "replace")
    except GitFailedError:
        text = ""
    urls = dict(_paths_and_urls(text))
    return [Submodule(path, sha, urls.get(path, "")) for path, sha in links.items()]


def fetch_submodules(
    repository: BareRepository, remote: GitRemote, tree: str, *, timeout_s: float, allow_local: bool = False
) -> Sequence[str]:
    """Fetch the submodules of a tree, each at its one commit and without a token.

    Returns what cannot be had, as sentences.

    Raises:
        RemoteUnavailable: the host did not answer.
        RemoteRefused: a submodule did not come within `timeout_s`.
    """
    missing = []
    found = submodules_of(repository, tree)
    there = fetched_submodules(repository) if found else frozenset()
    if len(found) > MOST:
        missing.append(f"It has {len(found)} submodules; {MOST} are fetched.")
    for module in found[:MOST]:
        if not SHA.fullmatch(module.sha) or module.sha in there:
            continue
        try:
            _fetch(repository, module, remote, timeout_s, allow_local)
        except (RemoteUnavailable, RemoteRefused):
            raise
        except CheckoutError as error:
            missing.append(f"The submodule {module.path!r} is missing: {error}")
    return missing


def fetched_submodules(repository: BareRepository) -> frozenset[str]:
    """Return the commits that were fetched as submodules'."""
    return frozenset(repository.git("for-each-ref", "--format=%(objectname)", FETCHED).decode("ascii").split())


def allowed_url(url: str, remote: GitRemote, *, allow_local: bool = False) -> str:
    """Return where a submodule is fetched from: a place on the same host as the repository itself, by the same scheme.

    Raises:
        CheckoutError: it is anywhere else.
    """
    own = urlsplit(remote.url)
    if url.startswith(("./", "../")):  # gitsubmodules(7): relative to the superproject's own
        path = posixpath.normpath(posixpath.join(own.path, url))
        return own._replace(path=path).geturl()
    if match := _SSH.fullmatch(url):
        url = f"{own.scheme}://{match.group(1)}/{match.group(2)}"
    with contextlib.suppress(ValueError):  # it is no URL at all
        other = urlsplit(url)
        if (other.scheme, other.netloc) == (own.scheme, own.netloc) and (own.scheme or allow_local):
            return url
    raise CheckoutError(f"{url[:200]!r} is not on {own.netloc or 'this machine'}, where the repository itself is.")


def _fetch(
    repository: BareRepository, module: Submodule, remote: GitRemote, timeout_s: float, allow_local: bool
) -> None:
    if not module.url:
        raise CheckoutError(".gitmodules does not say where it is.")
    source = GitRemote(allowed_url(module.url, remote, allow_local=allow_local))
    local = check_remote(source, allow_local=allow_local)
    wanted = [f"{module.sha}:{FETCHED}/{module.sha}"]
    try:
        repository.fetch(source, wanted, "--depth=1", timeout_s=timeout_s, largest_pack=_PACK_LIMIT, local=local)
    except GitFailedError as error:
        words = f"The submodule {module.path!r} cannot be fetched: {error}"
        if TOO_SLOW in str(error):
            raise RemoteRefused(words) from error
        if not local and _TEMPORARY.search(str(error)):
            raise RemoteUnavailable(words) from error
        raise


def _paths_and_urls(text: str) -> Iterator[tuple[str, str]]:
    """Read `.gitmodules` (gitmodules(5)); a later section for a path wins, as in git."""
    section: dict[str, str] = {}
    inside = False
    for raw in [*text.splitlines(), "[end]"]:
        line = raw.strip()
        if line.startswith("["):
            if "path" in section and "url" in section:
                yield section["path"], section["url"]
            section = {}
            inside = _SECTION.fullmatch(line) is not None
        elif (match := _VALUE.fullmatch(line)) is not None and inside:
            section[match.group(1)] = match.group(2).strip('"')

"""Makes trees in a bare repository: of a patch, and of a change on top of a later commit. There is no working tree.

Attributes, drivers and filters of a tree do nothing here, as everywhere in a mirror.
"""

import tempfile
from pathlib import Path

from sandbox.bare import LISTING_LIMIT, BareRepository, checked_sha
from sandbox.errors import PatchError
from sandbox.git import GitFailedError

_CONFLICT = 1
"""The exit status of git-merge-tree(1) where there are conflicts; others are errors."""
# The merge takes commits, to find what they have in common. This one is nobody's and is never pushed.
_NOBODY = {
    f"GIT_{role}_{field}": value
    for role in ("AUTHOR", "COMMITTER")
    for field, value in (("NAME", "acrouter"), ("EMAIL", "acrouter@localhost"), ("DATE", "@0 +0000"))
}


def patched_tree(repository: BareRepository, base_sha: str, patch: str) -> str:
    """Return the SHA of the tree that `patch` makes of a commit's or tree's, through an index alone.

    Raises:
        PatchError: it is empty, does not apply, or reaches outside of the tree.
    """
    if not patch.strip():
        raise PatchError("The patch is empty.")
    content = patch.encode("utf-8", "surrogateescape")
    failure = ""
    for merge in ([], ["--3way"]):
        with tempfile.TemporaryDirectory(prefix="acrouter-index-") as folder:
            index = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
            repository.git("read-tree", f"{checked_sha(base_sha)}^{{tree}}", environment=index)
            try:
                repository.git(
                    "apply", "--cached", "--whitespace=nowarn", *merge, "-", stdin=content, environment=index
                )
                return repository.git("write-tree", environment=index).decode().strip()
            except GitFailedError as error:
                failure = failure or str(error)  # the first says more than the merge's
    raise PatchError(f"The patch does not apply: {failure}")


def merged_tree(repository: BareRepository, base_sha: str, tree: str, later_sha: str) -> str:
    """Return the SHA of the tree that has, on top of `later_sha`, what `tree` changes of its ancestor `base_sha`.

    That is the later commit's own tree where it has the whole change already.

    Raises:
        PatchError: the change conflicts with what came later, or would be another one there: of other files, of other
            modes, or of a part of them.
        CheckoutError: a commit is not here, the later one has too many files, or git is older than 2.38.
    """
    _check_size(repository, later_sha)
    changed = repository.git("commit-tree", checked_sha(tree), "-p", checked_sha(base_sha), environment=_NOBODY)
    ours = changed.decode().strip()
    try:
        written = repository.git("merge-tree", "--write-tree", "--no-messages", later_sha, ours)
    except GitFailedError as error:
        if error.status == _CONFLICT:
            raise PatchError("The patch conflicts with it.") from error
        raise
    merged = written.decode().strip()
    changes = _changes(repository, later_sha, merged)
    # git follows renames: the change may have come to stand in a file that nobody looked at.
    if changes and changes != _changes(repository, base_sha, tree):
        raise PatchError("The patch is in it in part, or would change other files there.")
    return merged


def _check_size(repository: BareRepository, sha: str) -> None:
    """Make sure that a commit is here, and that its tree has an end: a merge holds all of it in memory."""
    with tempfile.TemporaryDirectory(prefix="acrouter-tree-") as folder:
        listing = Path(folder) / "listing"
        repository.git(
            "ls-tree", "-r", "-z", "--full-tree", checked_sha(sha), stdout_to=listing, file_limit=LISTING_LIMIT
        )


def _changes(repository: BareRepository, a: str, b: str) -> frozenset[tuple[bytes, bytes, bytes, bytes]]:
    """Return which files differ between two commits or trees: old mode, new mode, kind of change and path of each."""
    listed = repository.git("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", checked_sha(a), b)
    words = listed.split(b"\0")[:-1]
    found = set()
    for facts, path in zip(words[::2], words[1::2], strict=True):
        old_mode, new_mode, _, _, kind = facts.removeprefix(b":").split(b" ")
        found.add((old_mode, new_mode, kind, path))
    return frozenset(found)

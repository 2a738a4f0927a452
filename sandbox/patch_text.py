"""Reads a git patch strictly: only what `git diff --binary --full-index --no-renames` writes, nothing in between.

`unidiff` counts and reads the hunks. The headers are read here, because what a lax reader skips `git apply` may act on:
a second file hidden behind a hunk, a rename, a name that differs between two headers.
Format: https://git-scm.com/docs/diff-format
"""

import re
from dataclasses import dataclass
from typing import Literal

import unidiff

from sandbox.errors import PatchError

Kind = Literal["modified", "added", "deleted"]

_MODE = re.compile(r"(new file|deleted file|old|new) mode ([0-7]{6})")
_INDEX = re.compile(r"index [0-9a-f]{40,64}\.\.[0-9a-f]{40,64}(?: ([0-7]{6}))?")
_BINARY_LINE = re.compile(r"(?:literal|delta) \d+|[A-Za-z][0-9A-Za-z!#$%&()*+;<=>?@^_`{|}~-]+|")
_ESCAPES = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
_QUOTED = re.compile(r'\\([0-7]{3}|[abtnvfr"\\])')


@dataclass(frozen=True)
class FileChange:
    """What a patch does to one file."""

    path: str
    """As git has it, decoded from UTF-8; bytes that are not are lone surrogates (PEP 383)."""
    kind: Kind
    old_mode: str
    new_mode: str
    """Six octal digits; empty where the patch does not say."""
    binary: bool
    added: tuple[str, ...]
    """Added lines without their line ends."""
    removed: tuple[str, ...]
    section: str
    """The file's part of the patch: sections put together again are a patch."""

    @property
    def mode_changed(self) -> bool:
        return self.kind == "modified" and self.old_mode != self.new_mode


def split(patch: str) -> list[str]:
    """Return the patch's text file by file.

    Raises:
        PatchError: something stands before the first file's header.
    """
    if not patch.strip():
        return []
    if not patch.startswith("diff --git "):
        raise PatchError("The patch does not start with a `diff --git` header.")
    # Lines of hunks start with a space, +, - or a backslash: one that starts with this is a header.
    return re.split(r"(?<=\n)(?=diff --git )", patch)


def read(patch: str) -> list[FileChange]:
    """Return the changes of a patch, file by file.

    Raises:
        PatchError: it is not what git writes; the message says where.
    """
    changes = [_read_section(section) for section in split(patch)]
    seen: set[str] = set()
    for change in changes:
        if change.path in seen:
            raise PatchError(f"The patch changes {change.path!r} twice.")
        seen.add(change.path)
    return changes


def header_path(section: str) -> str:
    """Return the path in a section's `diff --git` line.

    Raises:
        PatchError: the two names differ (a rename), or the line cannot be read.
    """
    rest = section.split("\n", 1)[0].removeprefix("diff --git ")
    if rest.startswith('"'):
        middle = re.match(r'("(?:[^"\\]|\\.)*") ("(?:[^"\\]|\\.)*")', rest)
        old, new = (unquote(middle[1]), unquote(middle[2])) if middle and middle.end() == len(rest) else ("", "")
    else:
        half = (len(rest) - 1) // 2
        old, new = rest[:half], rest[half + 1 :]
        if rest[half : half + 1] != " ":
            old = ""
    if not old.startswith("a/") or not new.startswith("b/") or old[2:] != new[2:] or len(old) < 3:
        raise PatchError(f"The patch renames a file or has a header that cannot be read: {rest[:200]!r}.")
    return old[2:]


def unquote(name: str) -> str:
    """Return a name without git's C-style quotes (`core.quotePath`)."""
    if not name.startswith('"'):
        return name

    def byte(match: re.Match[str]) -> str:
        code = match[1]
        value = int(code, 8) & 0xFF if code.isdigit() else _ESCAPES[code]
        return chr(value)

    # Latin-1 carries each octal byte as itself; what was UTF-8 already is turned to bytes first.
    raw = name[1:-1].encode("utf-8", "surrogateescape").decode("latin-1")
    return _QUOTED.sub(byte, raw).encode("latin-1").decode("utf-8", "surrogateescape")


def quote(name: str) -> str:
    """Return a name in git's C-style quotes, every unusual byte as octal."""
    raw = name.encode("utf-8", "surrogateescape")
    return '"' + "".join(chr(b) if (b < 128 and chr(b).isalnum()) or b in b"/._-" else f"\\{b:03o}" for b in raw) + '"'


def _read_section(section: str) -> FileChange:
    path = header_path(section)
    if not section.endswith("\n"):
        raise PatchError(f"The patch is cut off in the change of {path!r}.")
    lines = section[:-1].split("\n")
    kind, modes, length = _read_modes(lines[1:], path)
    body = lines[1 + length :]
    binary = bool(body) and body[0] == "GIT binary patch"
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    if binary:
        if not all(_BINARY_LINE.fullmatch(line) for line in body[1:]):
            raise PatchError(f"The binary change of {path!r} cannot be read.")
    elif body:
        _check_names(body, path, kind)
        added, removed = _read_hunks(body[2:], path)
    return FileChange(path, kind, *modes, binary, added, removed, section)


def _read_modes(lines: list[str], path: str) -> tuple[Kind, tuple[str, str], int]:
    """Return the kind of a change, its old and new mode, and how many lines say so.

    git writes each mode once: in a header where it changes, in the `index` line where it stays. Of two that differ
    `git apply` may believe another one than a reader does, and where there is none it keeps that of a link.
    """
    said: list[tuple[str, str]] = []
    length = 0
    for line in lines:
        mode, index = _MODE.fullmatch(line), _INDEX.fullmatch(line)
        if mode:
            said.append((mode[1], mode[2]))
        elif index and index[1]:
            said.append(("index", index[1]))
        elif not index:
            break
        length += 1
    match said:
        case [("new file", new)]:
            return "added", ("", new), length
        case [("deleted file", old)]:
            return "deleted", (old, ""), length
        case [("old", old), ("new", new)]:
            return "modified", (old, new), length
        case [("index", kept)]:
            return "modified", (kept, kept), length
    modes = ", ".join(f"{name} {mode}" for name, mode in said) or "none"
    raise PatchError(f"The headers of {path!r} do not say once which mode it has: {modes}.")


def _check_names(body: list[str], path: str, kind: Kind) -> None:
    if len(body) < 3 or not body[0].startswith("--- ") or not body[1].startswith("+++ "):
        raise PatchError(f"The change of {path!r} holds something unexpected: {body[0][:200]!r}.")
    # git ends a name that holds blanks with a tab.
    old, new = (unquote(line[4:].removesuffix("\t")) for line in body[:2])
    wanted = ("/dev/null" if kind == "added" else f"a/{path}", "/dev/null" if kind == "deleted" else f"b/{path}")
    if (old, new) != wanted:
        raise PatchError(f"The headers of {path!r} name different files: {old!r} and {new!r}.")


def _read_hunks(body: list[str], path: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    try:
        # A name of our own: unidiff reads the hunks only, and odd names are none of its business.
        files = unidiff.PatchSet("--- a/file\n+++ b/file\n" + "\n".join(body) + "\n")
    except (unidiff.UnidiffParseError, ValueError) as error:  # or a number of thousands of digits
        raise PatchError(f"The change of {path!r} cannot be read: {error}.") from error
    lines = [line for file in files for hunk in file for line in hunk]
    hunks = sum(len(file) for file in files)
    if len(files) != 1 or len(lines) + hunks != len(body):
        raise PatchError(f"The change of {path!r} holds lines that belong to no hunk.")
    added = tuple(line.value.removesuffix("\n").removesuffix("\r") for line in lines if line.is_added)
    removed = tuple(line.value.removesuffix("\n").removesuffix("\r") for line in lines if line.is_removed)
    return added, removed

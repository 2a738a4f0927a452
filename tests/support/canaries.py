"""Looks for planted secrets wherever a text can end up."""

import base64
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import docker
from sqlalchemy import text
from sqlmodel import SQLModel

from store.database import Database
from store.types import unpack


def found(canaries: Mapping[str, str], content: str | bytes) -> set[str]:
    """Return the names of the canaries that stand in a text, as they are or as git sends them in a header."""
    data = content.encode(errors="surrogateescape") if isinstance(content, str) else content
    return {name for name, secret in canaries.items() if any(form in data for form in _forms(secret))}


def _forms(secret: str) -> Iterator[bytes]:
    yield secret.encode()
    yield base64.b64encode(secret.encode()).rstrip(b"=")
    # Where "x-access-token:" stands before it, its own base64 begins at a whole triple.
    yield base64.b64encode(b"x-access-token:" + secret.encode()).rstrip(b"=")


def database_rows(database: Database, without: Iterable[tuple[str, str]] = ()) -> Iterator[tuple[str, str]]:
    """Yield the name of each column of each table, and each of its values as text."""
    left_out = set(without)
    with database.session() as session:
        for table in SQLModel.metadata.sorted_tables:
            for row in session.execute(text(f'SELECT * FROM "{table.name}"')).mappings():  # noqa: S608  (our tables)
                for column, value in row.items():
                    if (table.name, column) not in left_out:
                        raw = unpack(bytes(value)) if isinstance(value, bytes | memoryview) else value
                        content = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)
                        yield f"{table.name}.{column}", content


def files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield every file below a folder."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            yield str(path.relative_to(folder)), path.read_bytes()


def git_objects(repository: Path) -> bytes:
    """Return every object of a repository in one text: commits, trees, files."""
    command = ["git", "-C", str(repository), "cat-file", "--batch", "--batch-all-objects"]
    return subprocess.run(command, check=True, capture_output=True).stdout


def inside_container(container: str, canaries: Iterable[str]) -> list[str]:
    """Return where in a running container, seen by its host's root, a canary stands: files and environments."""
    api = docker.from_env().api
    root = f"/proc/{api.inspect_container(container)['State']['Pid']}/root/"
    assert (Path(root) / "etc").is_dir(), "the container's files can be seen"
    processes = [row[0] for row in api.top(container, ps_args="-o pid")["Processes"]]
    assert processes
    # The patterns come by standard input: on a command line they would find themselves.
    patterns = "\n".join(canaries) + "\n"
    places = [f"/proc/{pid}/{file}" for pid in processes for file in ("environ", "cmdline")]
    found = []
    for search in (["-r", "--exclude-dir=proc", "--exclude-dir=sys", root], places):
        command = ["grep", "--files-with-matches", "--text", "--fixed-strings", "--no-messages", "-f", "-", *search]
        done = subprocess.run(command, input=patterns, capture_output=True, text=True, timeout=100, check=False)
        found += done.stdout.split()
    return found


@contextmanager
def command_lines() -> Iterator[set[bytes]]:
    """Gather the command lines of all processes of this machine that run during the block."""
    seen: set[bytes] = set()
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.002):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    seen.add(path.read_bytes())
                except OSError:
                    continue

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()

"""The folder of the database, the mirrors and the credentials: one user's alone, and not the repository's around it."""

from contextlib import suppress
from pathlib import Path


def make_data_dir(folder: Path) -> None:
    """Make the folder where it is missing. One that is there stays as it is: it may hold more than what is ours.

    Raises:
        OSError: it cannot be made.
    """
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700, parents=True)
        (folder / ".gitignore").write_text("*\n", encoding="utf-8")

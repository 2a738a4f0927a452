"""docs/operations.md: its backup, made while acrouter runs, is all of the database."""

import re
import subprocess
import sys
from pathlib import Path

from sqlmodel import select

from store import migrations
from store.database import Database
from store.tables import Task
from tests.support.rows import add_task

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operations.md"


def test_the_backup_of_the_page_holds_what_is_only_in_the_log_yet(tmp_path: Path, migrated_sqlite: Path) -> None:
    place = tmp_path / ".acrouter" / "acrouter.sqlite3"
    place.parent.mkdir()
    place.write_bytes(migrated_sqlite.read_bytes())
    running = Database(f"sqlite:///{place}")
    made = add_task(running, title="kept")
    (command,) = re.findall(r"```sh\n(.*VACUUM INTO.*)\n```", PAGE.read_text(encoding="utf-8"))
    subprocess.run(["sh", "-c", command.replace(".venv/bin/python", sys.executable)], cwd=tmp_path, check=True)
    running.dispose()

    backup = tmp_path / "acrouter-backup.sqlite3"
    assert backup.stat().st_mode & 0o077 == 0, "it holds people's tokens"
    restored = Database(f"sqlite:///{backup}")
    migrations.upgrade(restored)
    with restored.reading() as session:
        assert session.exec(select(Task.title).where(Task.id == made)).one() == "kept"
    restored.dispose()

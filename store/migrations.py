"""Runs Alembic's migrations from code, so that one command can start everything."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from store.database import Database
from store.errors import ConfigurationError

_ROOT = Path(__file__).resolve().parent.parent
# A checkout keeps the scripts in `alembic/`; the wheel carries them beside this module.
_LOCATIONS = (_ROOT / "alembic", Path(__file__).resolve().parent / "alembic_scripts")


def _config(database: Database) -> Config:
    config = Config()
    location = next(path for path in _LOCATIONS if (path / "env.py").is_file())
    config.set_main_option("script_location", str(location))
    config.attributes["engine"] = database.engine
    return config


def upgrade(database: Database, revision: str = "head") -> None:
    """Bring the schema to `revision`. Safe to run from several processes at once.

    Raises:
        ConfigurationError: a newer acrouter has brought it further than this one knows.
    """
    require_known(database)
    command.upgrade(_config(database), revision)


def downgrade(database: Database, revision: str) -> None:
    """Take the schema back to `revision`."""
    command.downgrade(_config(database), revision)


def pending(database: Database) -> tuple[str | None, str | None]:
    """Return (the database's revision, the newest revision)."""
    with database.engine.connect() as connection:
        current = MigrationContext.configure(connection).get_current_revision()
    return current, ScriptDirectory.from_config(_config(database)).get_current_head()


def require_known(database: Database) -> None:
    """Make sure that the schema is none of a newer acrouter's, as after an upgrade that was taken back.

    Raises:
        ConfigurationError: it is.
    """
    current, newest = pending(database)
    known = {script.revision for script in ScriptDirectory.from_config(_config(database)).walk_revisions()}
    if current is not None and current not in known:
        raise ConfigurationError(
            f"The database is at revision {current}, and this acrouter knows none after {newest}: a newer acrouter has "
            "used it. Install that version again, or restore the backup from before the upgrade."
        )

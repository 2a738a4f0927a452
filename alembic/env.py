"""Alembic's environment: migrates the engine that `store.migrations` hands over, or `DATABASE_URL` from its own CLI."""

from alembic import context
from sqlalchemy import text
from sqlmodel import SQLModel

import store.tables  # noqa: F401  (registers the tables)
from store.database import Database
from store.settings import load_settings

# Any number that no other program uses: two processes that migrate one Postgres take turns on it.
_MIGRATION_LOCK = 7_226_902_233

engine = context.config.attributes.get("engine") or Database(load_settings().resolved_database_url).engine

with engine.connect() as connection:
    sqlite = connection.dialect.name == "sqlite"
    if sqlite:
        # SQLite changes a table by making it anew, and refuses to drop the old one while rows refer to it. The switch
        # works outside a transaction alone, so it goes past SQLAlchemy, which would begin one
        # (https://www.sqlite.org/lang_altertable.html#otheralter).
        connection.connection.cursor().execute("PRAGMA foreign_keys=OFF")
    context.configure(
        connection=connection,
        target_metadata=SQLModel.metadata,
        render_as_batch=True,
        compare_type=True,
        transaction_per_migration=False,
        # Alembic thinks of a driver of SQLite's that commits by itself; ours never does. So one transaction holds all:
        # what fails midway leaves nothing, and a process that waits reads the revision after the one before it.
        transactional_ddl=True,
    )
    with context.begin_transaction():
        if connection.dialect.name == "postgresql":
            connection.execute(text(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})"))
        context.run_migrations()
        if sqlite and (broken := connection.exec_driver_sql("PRAGMA foreign_key_check").all()):
            raise RuntimeError(f"The migration left rows that refer to nothing: {broken[:5]}")
    connection.commit()
    if sqlite:
        connection.connection.cursor().execute("PRAGMA foreign_keys=ON")

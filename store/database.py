"""Engines and sessions: SQLite in WAL mode by default, Postgres the other."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlmodel import Session

from store.errors import ConfigurationError

# How long a writer waits for another before SQLite gives up.
BUSY_TIMEOUT_MS = 15_000
_DRIVERS = {"sqlite": "pysqlite", "postgresql": "psycopg"}


class Database:
    """One engine and its sessions."""

    def __init__(self, url: str) -> None:
        """Open `url` (SQLAlchemy's form, `sqlite:///...` or `postgresql+psycopg://...`).

        Raises:
            ConfigurationError: the URL cannot be parsed or names another kind of database.
        """
        self.url = url
        self.engine = _engine(url)

    @property
    def is_sqlite(self) -> bool:
        return self.engine.dialect.name == "sqlite"

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Yield a session whose changes are committed at the end, or rolled back when an exception passes.

        On SQLite the transaction takes the write lock at its start: two of them follow each other instead of failing
        when the second tries to upgrade.
        """
        with Session(self.engine, expire_on_commit=False) as session:
            try:
                yield session
                session.commit()
            except BaseException:
                session.rollback()
                raise

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Yield a session that only reads: on SQLite it takes no write lock, so no worker waits for a page."""
        with (
            self.engine.connect().execution_options(acrouter_reads=True, postgresql_readonly=True) as connection,
            Session(connection, expire_on_commit=False) as session,
        ):
            yield session

    def require_reachable(self) -> None:
        """Connect once.

        Raises:
            ConfigurationError: it cannot be reached or opened (the message gives the first line of the reason), or
                there are texts that it cannot hold.
        """
        shown = self.engine.url.render_as_string(hide_password=True)
        try:
            with self.engine.connect() as connection:
                encoding = "UTF8" if self.is_sqlite else connection.exec_driver_sql("SHOW server_encoding").scalar_one()
        except DBAPIError as error:
            reason = str(error.orig).strip().partition("\n")[0]
            raise ConfigurationError(
                f"The database at {shown} cannot be opened: {reason}. Start it or correct DATABASE_URL."
            ) from error
        if encoding != "UTF8":
            raise ConfigurationError(
                f"The database at {shown} has the encoding {encoding}, in which people's words cannot be kept. Make "
                "another: CREATE DATABASE acrouter ENCODING 'UTF8' TEMPLATE template0."
            )

    def dispose(self) -> None:
        """Close every pooled connection."""
        self.engine.dispose()


def _engine(url: str) -> Engine:
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise ConfigurationError(
            "DATABASE_URL: cannot be parsed. Give sqlite:///PATH or postgresql://USER:PASSWORD@HOST/NAME."
        ) from error
    backend = parsed.get_backend_name()
    _check_driver(parsed.drivername, backend)
    if backend == "sqlite":
        if parsed.database:
            _make_folder(Path(parsed.database).parent)
        engine = create_engine(
            parsed, hide_parameters=True, connect_args={"check_same_thread": False, "timeout": BUSY_TIMEOUT_MS / 1000}
        )
        event.listen(engine, "connect", _configure_sqlite)
        event.listen(engine, "begin", _begin_immediate)
        return engine
    if backend == "postgresql":
        # The driver would take over a server's own encoding, and give bytes where that is SQL_ASCII.
        return create_engine(
            parsed,
            hide_parameters=True,
            pool_pre_ping=True,
            pool_size=10,
            max_overflow=20,
            connect_args={"client_encoding": "utf8"},
        )
    raise ConfigurationError(f"DATABASE_URL: '{backend}' is not supported. Use sqlite or postgresql.")


def _check_driver(name: str, backend: str) -> None:
    driver = name.partition("+")[2]
    wanted = _DRIVERS.get(backend, "")
    if driver and wanted and driver != wanted:
        raise ConfigurationError(f"DATABASE_URL: the driver '{driver}' is not supported. Write {backend}://... alone.")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"The database's folder {folder} cannot be made: {error.strerror}. Set ACROUTER_DATA_DIR or DATABASE_URL "
            "to a place that can be written."
        ) from error


def _configure_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # the driver would begin transactions late; `_begin_immediate` does it instead
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")  # an acknowledged delivery survives a power cut
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
    cursor.close()


def _begin_immediate(connection: Any) -> None:
    options = connection.get_execution_options()
    if options.get("isolation_level") != "AUTOCOMMIT":
        connection.exec_driver_sql("BEGIN" if options.get("acrouter_reads", False) else "BEGIN IMMEDIATE")

"""A throw-away database on the Postgres server that a benchmark may use."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy
from sqlalchemy.engine import make_url

SETTING = "ACROUTER_BENCH_POSTGRES"
"""Names the server by its URL, e.g. `postgresql://postgres@localhost/postgres`; no setting of the product."""


def server_url() -> str:
    """Return the server's URL, or an empty word where none may be used."""
    return os.environ.get(SETTING, "")


@contextmanager
def throwaway_database(server: str) -> Iterator[str]:
    """Make a database on a server, yield its URL and drop it."""
    url = make_url(server).set(drivername="postgresql+psycopg")
    name = f"acrouter_bench_{uuid.uuid4().hex}"
    engine = sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text(f"CREATE DATABASE {name}"))
    try:
        yield url.set(database=name).render_as_string(hide_password=False)
    finally:
        with engine.connect() as connection:
            connection.execute(sqlalchemy.text(f"DROP DATABASE {name} WITH (FORCE)"))
        engine.dispose()

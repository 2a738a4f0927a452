"""People's words hold every script and every emoji: a database that cannot keep them is refused before it is used."""

import uuid

import psycopg
import pytest

from store.database import Database
from store.errors import ConfigurationError

pytestmark = pytest.mark.postgres


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_another_encoding_is_refused_with_what_to_do(postgres_base: str, encoding: str) -> None:
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(f"{postgres_base}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
    with pytest.raises(ConfigurationError, match=rf"encoding {encoding}, .* ENCODING 'UTF8' TEMPLATE template0"):
        Database(f"{postgres_base}/{name}".replace("postgresql:", "postgresql+psycopg:")).require_reachable()


def test_utf_8_is_taken(postgres_database: Database) -> None:
    postgres_database.require_reachable()

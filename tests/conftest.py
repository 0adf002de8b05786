"""Shared fixtures: a real Postgres for the session, a fresh database for each test, a whole program on top."""

import itertools
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

if TYPE_CHECKING:
    from tests.program import Program

from adapters.postgres.embedded import EmbeddedPostgres
from adapters.store.event_store import EventStore

_numbers = itertools.count(1)

for _name in [n for n in os.environ if n.startswith("DUCKLM_")]:
    # A developer's own settings must not steer the tests.
    del os.environ[_name]


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """A conninfo of an embedded server that lives as long as the session."""
    home = Path(tempfile.mkdtemp(prefix="ducklm-pg-"))
    server = EmbeddedPostgres(home)
    try:
        yield server.start()
    finally:
        server.stop()
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def database_url(postgres: str) -> Iterator[str]:
    """A conninfo of an empty database of its own."""
    name = f"test_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(postgres, autocommit=True) as conn:
        conn.execute(f"CREATE DATABASE {name}")
    try:
        yield make_conninfo(postgres, dbname=name)
    finally:
        with psycopg.connect(postgres, autocommit=True) as conn:
            conn.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@pytest.fixture
def store(database_url: str) -> Iterator[EventStore]:
    """An event store on a fresh database."""
    opened = EventStore(database_url)
    try:
        yield opened
    finally:
        opened.close()


@pytest.fixture
async def program(database_url: str, tmp_path: Path) -> AsyncIterator["Program"]:
    """The whole program with a scripted model server: API, worker, projections."""
    from tests.program import start_program  # here, since unit tests need not load the whole program

    async with start_program(database_url, tmp_path) as started:
        yield started

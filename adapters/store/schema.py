"""Tables that belong to the log: command keys, blobs, snapshots. Events have their own, made by the library."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from adapters.store.recorder import APPEND_FUNCTION, TABLE

_LOCK = 7_263_001
_STATEMENTS = (
    "CREATE TABLE IF NOT EXISTS command_keys (key text PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())",
    "CREATE TABLE IF NOT EXISTS blobs (sha256 text PRIMARY KEY, body bytea NOT NULL, at timestamptz NOT NULL DEFAULT now())",
    """CREATE TABLE IF NOT EXISTS task_snapshots (
        stream text PRIMARY KEY, version bigint NOT NULL, schema text NOT NULL, last_event_id text NOT NULL,
        state bytea NOT NULL)""",
)
_VIEW = f"""
CREATE OR REPLACE VIEW event_log AS
SELECT notification_id AS position, originator_id AS stream, originator_version AS version, topic AS type,
       convert_from(state, 'UTF8')::json AS body
FROM {TABLE}"""


@contextmanager
def setting_up(conninfo: str) -> Iterator[psycopg.Connection]:
    """A connection for making tables, one process at a time: Postgres's IF NOT EXISTS is no protection against another
    process that makes the same table in the same moment."""
    with psycopg.connect(conninfo, autocommit=True) as conn:
        conn.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
        try:
            yield conn
        finally:
            conn.execute("SELECT pg_advisory_unlock(%s)", (_LOCK,))


def create_log_tables(conn: psycopg.Connection) -> None:
    """Makes what is missing beside the events."""
    for statement in _STATEMENTS:
        conn.execute(statement)


def create_log_functions(conn: psycopg.Connection) -> None:
    """How events are appended, and a view in which psql reads them as JSON. The events table must exist."""
    conn.execute(APPEND_FUNCTION)
    conn.execute(_VIEW)

"""The ``eventsourcing`` library as a log: its application with our mapper and recorder, and nothing of its aggregates."""

from collections.abc import Sequence
from typing import Any

from eventsourcing.application import Application
from eventsourcing.persistence import InfrastructureFactory, InterfaceError, Mapper, OperationalError, StoredEvent
from eventsourcing.postgres import PostgresApplicationRecorder, PostgresFactory
from eventsourcing.utils import Environment, retry
from psycopg.rows import dict_row, tuple_row

from domain.events import Envelope, decode_body, encode_body, tag_of

TABLE = "ducklm_events"
"""The library names the table after the application."""


class EnvelopeMapper(Mapper[str]):
    """Envelopes to stored rows and back: stream, version, tag, and plain JSON."""

    def to_stored_event(self, domain_event: Any) -> StoredEvent:
        e: Envelope = domain_event
        return StoredEvent(e.stream, e.version, tag_of(e.data), encode_body(e))

    def to_domain_event(self, stored_event: StoredEvent) -> Any:
        s = stored_event
        return decode_body(s.topic, s.state, str(s.originator_id), s.originator_version)


APPEND_FUNCTION = f"""
CREATE OR REPLACE FUNCTION ducklm_append(streams text[], versions bigint[], tags text[], bodies bytea[], command_key text)
RETURNS SETOF bigint LANGUAGE plpgsql AS $$
BEGIN
    SET LOCAL lock_timeout = '10s';
    LOCK TABLE {TABLE} IN EXCLUSIVE MODE;
    IF command_key <> '' THEN
        INSERT INTO command_keys (key) VALUES (command_key);
    END IF;
    NOTIFY {TABLE};
    RETURN QUERY
    INSERT INTO {TABLE} (originator_id, originator_version, topic, state)
    SELECT s, v, t, b FROM unnest(streams, versions, tags, bodies) WITH ORDINALITY AS e(s, v, t, b, n) ORDER BY n
    RETURNING notification_id;
END $$"""
"""What the library does in six statements, in one round trip: above all the table lock, which makes commit order equal
position order. (The library's own database function leaves the lock out.)"""


class OneTripRecorder(PostgresApplicationRecorder):
    """Appends with :data:`APPEND_FUNCTION`; a command key goes into the same transaction, so that a repeated command
    appends nothing. Like the library it tries again when the connection is lost."""

    @retry((InterfaceError, OperationalError), max_attempts=3, wait=0.2)
    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[int] | None:
        columns = (
            [e.originator_id for e in stored_events],
            [e.originator_version for e in stored_events],
            [e.topic for e in stored_events],
            [e.state for e in stored_events],
            kwargs.get("command_key", ""),
        )
        with self.datastore.get_connection() as conn, conn.cursor(row_factory=tuple_row) as cursor:
            cursor.execute(
                "SELECT * FROM ducklm_append(%b::text[], %b::bigint[], %b::text[], %b::bytea[], %b)",
                columns,
                prepare=True,
            )
            return [row[0] for row in cursor.fetchall()]


class EventLog(Application[str]):
    """The library's application, used for its recorder and event store only."""

    name = "ducklm"

    def __init__(self, env: dict[str, str], conninfo: dict[str, Any]) -> None:
        self._conninfo = conninfo
        super().__init__(env)

    def construct_factory(self, env: Environment) -> InfrastructureFactory[Any]:
        factory = super().construct_factory(env)
        assert isinstance(factory, PostgresFactory)
        # The library knows host, port, user, password and database only; TLS and other options must count here too.
        factory.datastore.pool.kwargs = {**self._conninfo, "row_factory": dict_row}
        return factory

    def construct_mapper(self) -> Mapper[str]:
        return EnvelopeMapper(self.construct_transcoder())


def open_log(conninfo: dict[str, Any], schema: str, pool_size: int) -> EventLog:
    """Opens the log; every setting is explicit, since unset ones silently mean an in-memory store.

    ``conninfo``: libpq keywords; ``schema``: where unqualified names of this connection go. The table lock that makes commit order equal position order stays on."""
    log = EventLog(
        conninfo=conninfo,
        env={
            "POSTGRES_SCHEMA": schema,
            "PERSISTENCE_MODULE": "eventsourcing.postgres",
            "APPLICATION_RECORDER_TOPIC": f"{OneTripRecorder.__module__}:{OneTripRecorder.__qualname__}",
            "POSTGRES_DBNAME": str(conninfo.get("dbname") or "postgres"),
            "POSTGRES_HOST": str(conninfo.get("host") or "localhost"),
            "POSTGRES_PORT": str(conninfo.get("port") or "5432"),
            "POSTGRES_USER": str(conninfo.get("user") or "postgres"),
            "POSTGRES_PASSWORD": str(conninfo.get("password") or "-"),
            "POSTGRES_POOL_SIZE": str(pool_size),
            "POSTGRES_MAX_OVERFLOW": str(pool_size),
            "POSTGRES_CONNECT_TIMEOUT": "2",
            "POSTGRES_LOCK_TIMEOUT": "10",
            "POSTGRES_ENABLE_DB_FUNCTIONS": "n",
            "POSTGRES_IDLE_IN_TRANSACTION_SESSION_TIMEOUT": "10",
            "ORIGINATOR_ID_TYPE": "text",
            "IS_SNAPSHOTTING_ENABLED": "n",
        },
    )
    if not isinstance(log.recorder, OneTripRecorder):
        raise TypeError(f"the log is kept by {type(log.recorder).__name__}, not in Postgres")
    return log

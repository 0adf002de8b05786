"""The ``eventsourcing`` library as a log: its application with our mapper and recorder, and nothing of its aggregates."""

from collections.abc import Sequence
from typing import Any

from eventsourcing.application import Application
from eventsourcing.persistence import Mapper, StoredEvent
from eventsourcing.postgres import PostgresApplicationRecorder

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


class CommandKeyRecorder(PostgresApplicationRecorder):
    """Inserts a command key in the append's own transaction, so that a repeated command appends nothing.

    ``_insert_events`` is a private method of the library; tests/contract pins that it still is called like this."""

    def _insert_events(self, curs: Any, stored_events: Sequence[StoredEvent], **kwargs: Any) -> None:
        super()._insert_events(curs, stored_events, **kwargs)
        if key := kwargs.get("command_key"):
            curs.execute("INSERT INTO command_keys (key) VALUES (%s)", (key,))


class EventLog(Application[str]):
    """The library's application, used for its recorder and event store only."""

    name = "ducklm"

    def construct_mapper(self) -> Mapper[str]:
        return EnvelopeMapper(self.construct_transcoder())


def open_log(conninfo: dict[str, str], pool_size: int) -> EventLog:
    """Opens the log; every setting is explicit, since unset ones silently mean an in-memory store.

    ``conninfo``: libpq keywords. The table lock that makes commit order equal position order stays on."""
    log = EventLog(
        env={
            "PERSISTENCE_MODULE": "eventsourcing.postgres",
            "APPLICATION_RECORDER_TOPIC": f"{CommandKeyRecorder.__module__}:{CommandKeyRecorder.__qualname__}",
            "POSTGRES_DBNAME": conninfo.get("dbname", "postgres"),
            "POSTGRES_HOST": conninfo.get("host", "localhost"),
            "POSTGRES_PORT": conninfo.get("port", "5432"),
            "POSTGRES_USER": conninfo.get("user", "postgres"),
            "POSTGRES_PASSWORD": conninfo.get("password") or "-",
            "POSTGRES_POOL_SIZE": str(pool_size),
            "POSTGRES_MAX_OVERFLOW": str(pool_size),
            "POSTGRES_CONNECT_TIMEOUT": "2",
            "POSTGRES_LOCK_TIMEOUT": "10",
            "POSTGRES_ENABLE_DB_FUNCTIONS": "n",
            "POSTGRES_IDLE_IN_TRANSACTION_SESSION_TIMEOUT": "10",
            "ORIGINATOR_ID_TYPE": "text",
            "IS_SNAPSHOTTING_ENABLED": "n",
        }
    )
    if not isinstance(log.recorder, CommandKeyRecorder):
        raise TypeError(f"the log is kept by {type(log.recorder).__name__}, not in Postgres")
    return log

"""Appending to and reading from the log. Synchronous: async code calls it in a thread."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import psycopg
import uuid_utils
from eventsourcing.persistence import IntegrityError, PersistenceError
from msgspec import Struct
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import ConnectionPool, PoolTimeout

from adapters.store.recorder import TABLE, open_log
from adapters.store.schema import create_log_functions, create_log_tables, setting_up
from domain.errors import ConcurrencyConflict, Conflict, StorageError
from domain.events import Actor, Envelope, Event, decode_body
from domain.task.events import ModelReplied, ToolFailed, ToolObserved

CHUNK = 250
"""Events in one append; 1,000 over a Unix socket hung in psycopg's pipeline."""

_ACTORS: dict[type[Event], Actor] = {ModelReplied: "model", ToolObserved: "tool", ToolFailed: "tool"}


class Write(Struct, frozen=True):
    """Events for one stream whose last version, as the writer knows it, is ``expected``."""

    stream: str
    expected: int
    events: Sequence[Event]


class DuplicateCommand(Conflict):
    """A command with this key was carried out before; nothing was appended."""


def new_id() -> str:
    """A uuid7: unique, and sorted by time."""
    return str(uuid_utils.uuid7())


def now() -> datetime:
    return datetime.now(UTC)


class EventStore:
    """The log. Positions are global, start at 1 and follow commit order."""

    def __init__(self, conninfo: str, pool_size: int = 4, clock: Callable[[], datetime] = now) -> None:
        self.conninfo = conninfo
        self._clock = clock
        try:
            with setting_up(conninfo) as conn:
                create_log_tables(conn)
                schema = (conn.execute("SELECT current_schema()").fetchone() or ("public",))[0]
                self._log = open_log(conninfo_to_dict(conninfo), schema, pool_size)
                create_log_functions(conn)
        except (psycopg.Error, PersistenceError) as error:
            raise StorageError(f"the database can't be opened: {error}") from error
        # check_connection makes a restarted server a matter of one more round trip, not of a failed request.
        self.pool: ConnectionPool[Any] = ConnectionPool(
            conninfo, min_size=1, max_size=pool_size + 2, kwargs={"autocommit": True}, timeout=3, open=True,
            check=ConnectionPool.check_connection, name="reads",
        )  # fmt: skip

    def close(self) -> None:
        self._log.close()
        self.pool.close()

    def append(
        self,
        writes: Sequence[Write],
        *,
        actor: Actor = "runtime",
        correlation_id: str = "",
        caused_by: str = "",
        command_key: str = "",
    ) -> list[Envelope]:
        """Appends to one or more streams in one transaction and returns the envelopes with their positions.

        Raises ``ConcurrencyConflict`` when a stream has moved on, ``DuplicateCommand`` for a key that was used before,
        ``StorageError`` when the database did not take it. Over 250 events it is one transaction a chunk."""
        return self.put(self.envelopes(writes, actor, correlation_id, caused_by), command_key)

    def put(self, envelopes: list[Envelope], command_key: str = "") -> list[Envelope]:
        """Appends envelopes that were made before; the same ones may be put again after a ``StorageError``."""
        stored: list[Envelope] = []
        for start in range(0, len(envelopes), CHUNK):
            stored += self._put(envelopes[start : start + CHUNK], command_key if start == 0 else "")
        return stored

    def envelopes(self, writes: Sequence[Write], actor: Actor, correlation: str, caused_by: str) -> list[Envelope]:
        """What :meth:`append` would append: with ids and time, without positions."""
        time, cause, out = self._clock(), caused_by, []
        for write in writes:
            for n, event in enumerate(write.events, start=1):
                envelope = Envelope(
                    0, write.stream, write.expected + n, new_id(), time, _ACTORS.get(type(event), actor),
                    correlation, cause, event,
                )  # fmt: skip
                out.append(envelope)
                cause = envelope.id
        return out

    def _put(self, envelopes: list[Envelope], command_key: str) -> list[Envelope]:
        keyed = {"command_key": command_key} if command_key else {}
        try:
            recordings = self._log.events.put(cast(Any, envelopes), **keyed)
        except IntegrityError as error:
            return self._explain(envelopes, command_key, error)
        except (PersistenceError, psycopg.Error, PoolTimeout) as error:
            raise StorageError(f"the database did not take the events, nothing was written: {error}") from error
        return [_at(e, r.notification.id) for e, r in zip(envelopes, recordings, strict=True)]

    def _explain(self, envelopes: list[Envelope], command_key: str, error: Exception) -> list[Envelope]:
        """The library retries after a lost connection, so the conflict may be with our own, committed events."""
        stored: dict[str, Envelope] = {}
        for stream in {e.stream for e in envelopes}:
            versions = [e.version for e in envelopes if e.stream == stream]
            stored |= {e.id: e for e in self.load(stream, min(versions) - 1, max(versions))}
        if all(e.id in stored for e in envelopes):
            return [stored[e.id] for e in envelopes]
        if command_key and self.used(command_key):
            raise DuplicateCommand(f"the command {command_key} was carried out before") from error
        streams = ", ".join(sorted({e.stream for e in envelopes}))
        raise ConcurrencyConflict(f"{streams} has moved on; load it again") from error

    def used(self, command_key: str) -> bool:
        return bool(self._query("SELECT 1 FROM command_keys WHERE key = %s", (command_key,)))

    def load(self, stream: str, after: int = 0, upto: int | None = None) -> list[Envelope]:
        """Events of one stream with ``after < version <= upto``, oldest first."""
        rows = self._query(
            f"SELECT topic, state, originator_version, notification_id FROM {TABLE} WHERE originator_id = %s "
            "AND originator_version > %s AND originator_version <= %s ORDER BY originator_version",
            (stream, after, 2**62 if upto is None else upto),
        )
        return [decode_body(topic, state, stream, version, position) for topic, state, version, position in rows]

    def read(
        self, after: int, limit: int, tags: Sequence[str] = (), stream: str = "", upto: int | None = None
    ) -> list[Envelope]:
        """Up to ``limit`` events with ``after < position <= upto``, oldest first; of some tags or one stream only."""
        return [decode_body(*row) for row in self.read_raw(after, limit, tags, stream, upto)]

    def read_raw(
        self, after: int, limit: int, tags: Sequence[str] = (), stream: str = "", upto: int | None = None
    ) -> list[tuple[str, bytes, str, int, int]]:
        """As :meth:`read`, undecoded: (tag, body, stream, version, position)."""
        where, params = "notification_id > %s", [after]
        values: list[Any] = list(params)
        if upto is not None:
            where += " AND notification_id <= %s"
            values.append(upto)
        if tags:
            where += " AND topic = ANY(%s)"
            values.append(list(tags))
        if stream:
            where += " AND originator_id = %s"
            values.append(stream)
        values.append(limit)
        return self._query(
            "SELECT topic, state, originator_id, originator_version, notification_id "
            f"FROM {TABLE} WHERE {where} ORDER BY notification_id LIMIT %s",
            values,
        )

    def find(self, tag: str, text: str) -> list[Envelope]:
        """Events of one tag in whose body ``text`` occurs; reads all events of the tag, so for rare questions only."""
        rows = self._query(
            "SELECT topic, state, originator_id, originator_version, notification_id "
            f"FROM {TABLE} WHERE topic = %s AND position(convert_to(%s, 'UTF8') IN state) > 0 ORDER BY notification_id",
            (tag, text),
        )
        return [decode_body(*row) for row in rows]

    def head(self) -> int:
        """The last position, 0 in an empty log."""
        return int(self._query(f"SELECT coalesce(max(notification_id), 0) FROM {TABLE}", ())[0][0])

    def _query(self, sql: str, params: Sequence[Any]) -> list[Any]:
        try:
            with self.pool.connection() as conn, conn.cursor(binary=True) as cursor:
                return list(cursor.execute(sql, params, prepare=True).fetchall())
        except (psycopg.Error, PoolTimeout) as error:
            raise StorageError(f"the database can't be read: {error}") from error


def _at(e: Envelope, position: int) -> Envelope:
    return Envelope(position, e.stream, e.version, e.id, e.time, e.actor, e.correlation_id, e.causation_id, e.data)

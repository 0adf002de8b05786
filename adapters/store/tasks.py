"""Loading tasks and other aggregates from their streams. A snapshot is a cache: thrown away, it is only slower."""

import hashlib

import msgspec
import psycopg
from msgspec import Struct
from psycopg_pool import PoolTimeout

from adapters.store.event_store import EventStore
from domain import conversation, grants
from domain.errors import NotFound, StorageError
from domain.ids import GRANTS_STREAM, conversation_stream, task_stream
from domain.task.evolve import fold
from domain.task.state import Task

SNAPSHOT_EVERY = 500
"""Events folded beyond the last snapshot before a new one replaces it."""

_SCHEMA = hashlib.sha256(repr([(f.name, f.type) for f in msgspec.structs.fields(Task)]).encode()).hexdigest()[:16]
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Task)


class LoadedTask(Struct, frozen=True):
    """A task's state with the id of its last event, which causes the next."""

    state: Task
    last_event_id: str = ""


class Aggregates:
    """Reads aggregates; ``NotFound`` for what has no events."""

    def __init__(self, store: EventStore) -> None:
        self.store = store

    def task(self, task_id: str, at: int | None = None) -> LoadedTask:
        """A task now, or as of version ``at``."""
        stream = task_stream(task_id)
        found = None if at is not None else self._snapshot(stream)
        state, last_id = found if found else (Task(task_id=task_id), "")
        log = self.store.load(stream, state.version, at)
        if not log and not state.version:
            raise NotFound(f"there is no task {task_id}")
        folded = fold(task_id, log, state)
        last_id = log[-1].id if log else last_id
        if at is None and len(log) >= SNAPSHOT_EVERY:
            self._save_snapshot(stream, folded, last_id)
        return LoadedTask(folded, last_id)

    def conversation(self, conversation_id: str) -> conversation.Conversation:
        state = conversation.Conversation(conversation_id)
        for envelope in self.store.load(conversation_stream(conversation_id)):
            state = conversation.evolve(state, envelope.data)
        if not state.version:
            raise NotFound(f"there is no conversation {conversation_id}")
        return state

    def grants(self, known: grants.Grants | None = None) -> grants.Grants:
        """All standing grants; pass the last result to read only what is new."""
        state = known or grants.Grants()
        for envelope in self.store.load(GRANTS_STREAM, state.version):
            state = grants.evolve(state, envelope.data)
        return state

    def _snapshot(self, stream: str) -> tuple[Task, str] | None:
        try:
            with self.store.pool.connection() as conn:
                row = conn.execute(
                    "SELECT state, last_event_id FROM task_snapshots WHERE stream = %s AND schema = %s",
                    (stream, _SCHEMA),
                    binary=True,
                ).fetchone()
        except (psycopg.Error, PoolTimeout) as error:
            raise StorageError(f"the database can't be read: {error}") from error
        if row is None:
            return None
        try:
            return _DECODER.decode(row[0]), row[1]
        except msgspec.DecodeError:
            return None

    def _save_snapshot(self, stream: str, state: Task, last_event_id: str) -> None:
        body = _ENCODER.encode(state)
        try:
            with self.store.pool.connection() as conn:
                conn.execute(
                    "INSERT INTO task_snapshots (stream, version, schema, last_event_id, state) VALUES (%s, %s, %s, %s, %s) "
                    "ON CONFLICT (stream) DO UPDATE SET version = excluded.version, schema = excluded.schema, "
                    "last_event_id = excluded.last_event_id, state = excluded.state "
                    "WHERE task_snapshots.version < excluded.version OR task_snapshots.schema <> excluded.schema",
                    (stream, state.version, _SCHEMA, last_event_id, body),
                )
        except (psycopg.Error, PoolTimeout) as error:
            raise StorageError(f"the database did not take a snapshot: {error}") from error

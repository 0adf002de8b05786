"""Content-addressed bytes that are too large for an event: the prompt prefix, long tool output."""

import hashlib

import psycopg
from psycopg_pool import PoolTimeout

from adapters.store.event_store import EventStore
from domain.errors import NotFound, StorageError


class Blobs:
    """Keeps bytes under their SHA-256 (hex)."""

    def __init__(self, store: EventStore) -> None:
        self._pool = store.pool
        self._known: set[str] = set()

    def put(self, body: bytes) -> str:
        """Stores ``body`` once and returns its hash."""
        sha = hashlib.sha256(body).hexdigest()
        if sha in self._known:
            return sha
        try:
            with self._pool.connection() as conn:
                conn.execute("INSERT INTO blobs (sha256, body) VALUES (%s, %s) ON CONFLICT DO NOTHING", (sha, body))
        except (psycopg.Error, PoolTimeout) as error:
            raise StorageError(f"the database did not take a blob: {error}") from error
        if len(self._known) < 10_000:
            self._known.add(sha)
        return sha

    def get(self, sha256: str) -> bytes:
        try:
            with self._pool.connection() as conn:
                row = conn.execute("SELECT body FROM blobs WHERE sha256 = %s", (sha256,)).fetchone()
        except (psycopg.Error, PoolTimeout) as error:
            raise StorageError(f"the database can't be read: {error}") from error
        if row is None:
            raise NotFound(f"there is no blob {sha256}")
        return bytes(row[0])

"""Keeps projections up to date: batches, exactly once, supervised.

The checkpoint row is locked and moved in the transaction that changes the tables, so a batch counts once or not at all,
whoever runs it. A projection that fails is tried again a few times, then parked with position and reason; the others go on.
"""

import threading
import time
from collections.abc import Sequence
from typing import Any, Protocol

import structlog
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from domain.errors import StorageError
from domain.events import Envelope, decode_body
from projections import checkpoints
from projections.base import Projection

BATCH = 500
POLL_SECONDS = 1.0
RETRIES = 3
_log = structlog.get_logger()

Raw = tuple[str, bytes, str, int, int]


class LogReader(Protocol):
    """The part of the event store that projections need."""

    def read_raw(
        self, after: int, limit: int, tags: Sequence[str] = (), stream: str = "", upto: int | None = None
    ) -> list[Raw]: ...

    def head(self) -> int: ...


class _Batch:
    """One read of the log, decoded at most once however many projections fold it."""

    def __init__(self, after: int, raw: list[Raw]) -> None:
        self.after = after
        self.raw = raw
        self._decoded: list[Envelope | None] = [None] * len(raw)

    @property
    def last(self) -> int:
        return self.raw[-1][4]

    def wanted(self, tags: frozenset[str]) -> list[Envelope]:
        out = []
        for i, row in enumerate(self.raw):
            if row[0] in tags:
                envelope = self._decoded[i]
                if envelope is None:
                    envelope = self._decoded[i] = decode_body(*row)
                out.append(envelope)
        return out


class ProjectionRunner:
    """Runs projections in a thread of its own. ``wake`` may be called from anywhere."""

    def __init__(self, engine: Engine, log: LogReader, projections: Sequence[Projection]) -> None:
        self._engine = engine
        self._log = log
        self.projections = list(projections)
        self._woken = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._failures: dict[str, int] = {}
        self._batch: _Batch | None = None

    def ensure(self) -> list[str]:
        """Creates tables and checkpoints that are missing; returns the names of read models that an older version
        of the program built, which need a rebuild. Call once before :meth:`start`."""
        outdated = []
        with self._engine.begin() as conn:
            checkpoints.create_table(conn)
            for projection in self.projections:
                state = checkpoints.lock(conn, projection.name)
                if state is not None and state["version"] != projection.version:
                    outdated.append(projection.name)
                elif state is None:
                    projection.create(conn)
                    checkpoints.insert(conn, projection.name, projection.version)
                else:
                    # A restart is a new chance: what was parked may have been mended with the new program.
                    checkpoints.unpark(conn, projection.name)
        return outdated

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="projections", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._woken.set()
        if self._thread:
            self._thread.join(timeout=10)

    def wake(self) -> None:
        self._woken.set()

    def catch_up(self) -> None:
        """Folds everything there is, in the calling thread; for tests and commands."""
        more = True
        while more:
            if (together := self._advance_together()) is not None:
                more = together
                continue
            # a list, since every projection gets its batch whatever the others say
            more = any([self._advance(p) for p in self.projections])  # noqa: C419

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._woken.clear()
            try:
                self.catch_up()
            except (SQLAlchemyError, StorageError) as error:
                _log.warning("projections_wait_for_database", error=str(error).splitlines()[0])
                self._stopping.wait(1.0)
            self._woken.wait(POLL_SECONDS)

    def _advance_together(self) -> bool | None:
        """One batch of all projections in one transaction, as long as they stand at the same position: a fifth of the
        round trips. None when they do not, or when one of them fails: then each goes by itself."""
        by_name = {p.name: p for p in self.projections}
        try:
            with self._engine.begin() as conn:
                standing = [
                    c
                    for c in checkpoints.lock_all(conn, list(by_name))
                    if c["parked_position"] is None and c["version"] == by_name[c["name"]].version
                ]
                if len({c["position"] for c in standing}) != 1 or self._failures:
                    return None
                batch = self._read(standing[0]["position"], BATCH)
                if not batch.raw:
                    return False
                for c in standing:
                    projection = by_name[c["name"]]
                    if wanted := batch.wanted(projection.tags):
                        projection.apply(conn, wanted)
                checkpoints.move_all(conn, [c["name"] for c in standing], batch.last)
            return len(batch.raw) == BATCH
        except StorageError:
            raise
        except Exception as error:
            if isinstance(error, DBAPIError) and (error.connection_invalidated or _gone(error)):
                raise
            return None

    def _advance(self, projection: Projection) -> bool:
        """One batch of one projection; whether there may be more."""
        try:
            more = self._step(projection, BATCH)
            self._failures.pop(projection.name, None)
            return more
        except (StorageError, DBAPIError) as error:
            if isinstance(error, StorageError) or error.connection_invalidated or _gone(error):
                raise
            return self._failed(projection, error)
        except Exception as error:
            return self._failed(projection, error)

    def _step(self, projection: Projection, limit: int) -> bool:
        with self._engine.begin() as conn:
            state = checkpoints.lock(conn, projection.name)
            if state is None or state["version"] != projection.version or state["parked_position"] is not None:
                return False
            batch = self._read(state["position"], limit)
            if not batch.raw:
                return False
            if wanted := batch.wanted(projection.tags):
                projection.apply(conn, wanted)
            checkpoints.move(conn, projection.name, batch.last)
        return len(batch.raw) == limit

    def _read(self, after: int, limit: int) -> _Batch:
        """Projections that stand at the same position share one read."""
        if limit != BATCH:
            return _Batch(after, self._log.read_raw(after, limit))
        if self._batch is None or self._batch.after != after or len(self._batch.raw) < BATCH:
            if self._batch and self._batch.after == after and self._batch.raw and self._batch.last >= self._log.head():
                return self._batch
            self._batch = _Batch(after, self._log.read_raw(after, limit))
        return self._batch

    def _failed(self, projection: Projection, error: Exception) -> bool:
        count = self._failures[projection.name] = self._failures.get(projection.name, 0) + 1
        _log.error("projection_failed", projection=projection.name, attempt=count, error=repr(error))
        if count < RETRIES:
            time.sleep(0.1 * count)
            return True
        self._park(projection)
        return False

    def _park(self, projection: Projection) -> None:
        """Goes on event by event to the one that fails, and stops before it."""
        try:
            while self._step(projection, 1):
                pass
        except (StorageError, DBAPIError) as error:
            if isinstance(error, StorageError) or error.connection_invalidated or _gone(error):
                raise
            self._mark(projection, error)
        except Exception as error:
            self._mark(projection, error)

    def _mark(self, projection: Projection, error: Exception) -> None:
        with self._engine.begin() as conn:
            state: Any = checkpoints.lock(conn, projection.name)
            position = next((r[4] for r in self._log.read_raw(state["position"], 1)), state["position"])
            checkpoints.park(conn, projection.name, position, f"{type(error).__name__}: {error}")
        _log.error("projection_parked", projection=projection.name, position=position, error=repr(error))


def _gone(error: DBAPIError) -> bool:
    """Whether the server went away, as opposed to refusing what we sent."""
    state = getattr(error.orig, "sqlstate", None)
    return state is None or state.startswith(("08", "57P", "53"))

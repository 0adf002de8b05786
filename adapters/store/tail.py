"""Following the log as it grows: one LISTEN connection a process, fanned out to whoever waits."""

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psycopg
import structlog

from adapters.store.event_store import EventStore
from adapters.store.recorder import TABLE
from domain.errors import StorageError
from domain.events import Envelope

_POLL = 1.0
_BATCH = 500
_log = structlog.get_logger()

Subscriber = Callable[[Envelope], None]


class LogTail:
    """Delivers every new event once and in order to subscribers, on the event loop.

    Wakes by NOTIFY and polls each second as a backup; a lost connection is made again, nothing is missed since
    what is delivered is read from the log by position."""

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._by_stream: dict[str, set[Subscriber]] = defaultdict(set)
        self._all: set[Subscriber] = set()
        self._wakes: list[Callable[[], None]] = []
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.position = 0
        self.connected = False

    def on_wake(self, call: Callable[[], None]) -> None:
        """Calls ``call`` from the tail's thread whenever something was appended."""
        self._wakes.append(call)

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.position = self._store.head()
        self.connected = True
        self._thread = threading.Thread(target=self._run, name="log-tail", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        with suppress(psycopg.Error), psycopg.connect(self._store.conninfo, autocommit=True, connect_timeout=1) as conn:
            conn.execute(f"NOTIFY {TABLE}")  # the thread sits in a wait for notifications
        if self._thread:
            self._thread.join(timeout=5)

    @contextmanager
    def subscribe(self, stream: str, subscriber: Subscriber) -> Iterator[None]:
        """Delivers new events of ``stream`` ("" for all) while the context is open."""
        group = self._by_stream[stream] if stream else self._all
        group.add(subscriber)
        try:
            yield
        finally:
            group.discard(subscriber)
            if stream and not group:
                self._by_stream.pop(stream, None)

    def _run(self) -> None:
        pause = 0.2
        while not self._stop.is_set():
            try:
                with psycopg.connect(self._store.conninfo, autocommit=True, connect_timeout=3) as conn:
                    conn.execute(f"LISTEN {TABLE}")
                    self._deliver_new()
                    self.connected, pause = True, 0.2
                    while not self._stop.is_set():
                        for _ in conn.notifies(timeout=_POLL, stop_after=1):
                            pass
                        self._deliver_new()
            except (psycopg.Error, StorageError) as error:
                if self._stop.is_set():
                    return
                if self.connected:
                    _log.warning("log_tail_lost", error=str(error))
                self.connected = False
                self._stop.wait(pause)
                pause = min(pause * 2, 2.0)

    def _deliver_new(self) -> None:
        while True:
            batch = self._store.read(self.position, _BATCH)
            if not batch:
                return
            self.position = batch[-1].position
            for wake in self._wakes:
                wake()
            assert self._loop is not None
            if self._loop.is_closed():
                return
            self._loop.call_soon_threadsafe(self._dispatch, batch)

    def _dispatch(self, batch: list[Envelope]) -> None:
        for envelope in batch:
            for subscriber in (*self._by_stream.get(envelope.stream, ()), *self._all):
                subscriber(envelope)

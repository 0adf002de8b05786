"""Live deltas between processes: what a worker's feed says reaches the feeds of servers on the same database.

Deltas are gathered for a moment and sent as one NOTIFY, in pieces under Postgres's limit of 8,000 bytes. They are not
events: what gets lost with a connection is made up for by the completed text, which is one."""

import asyncio
import zlib
from base64 import b85decode, b85encode
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Any

import msgspec
import psycopg
import structlog
from msgspec import Struct

from adapters.runtime.live import LiveDelta, LiveFeed

CHANNEL = "ducklm_live"
GATHER_SECONDS = 0.04
PIECE = 1_400
"""Characters of text in one delta that is sent."""
BACKLOG = 2_000
_MOST = 12
"""Deltas in a parcel: each costs some 150 bytes beside its text."""
Connection = psycopg.AsyncConnection[Any]
_log = structlog.get_logger()


class Parcel(Struct, frozen=True):
    """Deltas of one process. ``ended`` are calls that are over."""

    sender: str
    deltas: list[LiveDelta]
    ended: list[str] = []


def packed(parcel: Parcel) -> str:
    return b85encode(zlib.compress(msgspec.json.encode(parcel), 1)).decode()


def unpacked(payload: str) -> Parcel:
    return msgspec.json.decode(zlib.decompress(b85decode(payload)), type=Parcel)


class LiveBridge:
    """Sends this process's deltas and takes in those of others."""

    def __init__(self, conninfo: str, feed: LiveFeed, name: str) -> None:
        self._conninfo = conninfo
        self._feed = feed
        self._name = name
        self._deltas: list[LiveDelta] = []
        self._ended: list[str] = []
        self._filled = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._feed.on_local(self._gather, self._end)
        self._tasks = [
            asyncio.create_task(self._keep(self._send_all), name="live-send"),
            asyncio.create_task(self._keep(self._listen), name="live-listen"),
        ]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def _gather(self, delta: LiveDelta) -> None:
        for start in range(0, max(len(delta.text), 1), PIECE):
            piece = delta.text[start : start + PIECE]
            self._deltas.append(msgspec.structs.replace(delta, offset=delta.offset + start, text=piece))
        if len(self._deltas) > BACKLOG:
            # The database is away, or slower than the model: readers see by the offsets that something is missing.
            del self._deltas[: BACKLOG // 2]
        self._filled.set()

    def _end(self, call_id: str) -> None:
        self._ended.append(call_id)
        self._filled.set()

    async def _keep(self, work: Callable[[Connection], Awaitable[None]]) -> None:
        """Runs ``work`` for ever, with a new connection whenever the old one is lost."""
        pause = 0.2
        while True:
            try:
                async with await psycopg.AsyncConnection.connect(self._conninfo, autocommit=True) as conn:
                    pause = 0.2
                    await work(conn)
            except psycopg.Error as error:
                _log.info("live_bridge_waits_for_database", error=str(error))
                await asyncio.sleep(pause)
                pause = min(pause * 2, 3.0)

    async def _send_all(self, conn: Connection) -> None:
        while True:
            await self._filled.wait()
            await asyncio.sleep(GATHER_SECONDS)
            self._filled.clear()
            deltas, self._deltas = self._deltas, []
            ended, self._ended = self._ended, []
            for payload in self._payloads(_merged(deltas), ended):
                # one at a time: packing a long backlog must not hold up the loop
                await conn.execute("SELECT pg_notify(%s, %s)", (CHANNEL, payload))

    def _payloads(self, deltas: list[LiveDelta], ended: list[str]) -> Iterator[str]:
        """Parcels under the limit, made as they are sent; the ends come with the last."""
        parcel: list[LiveDelta] = []
        size = 0
        for delta in deltas:
            if parcel and (size + len(delta.text) > PIECE or len(parcel) >= _MOST):
                yield packed(Parcel(self._name, parcel))
                parcel, size = [], 0
            parcel.append(delta)
            size += len(delta.text)
        if parcel or ended:
            yield packed(Parcel(self._name, parcel, ended))

    async def _listen(self, conn: Connection) -> None:
        await conn.execute(f"LISTEN {CHANNEL}")
        async for notification in conn.notifies():
            parcel = unpacked(notification.payload)
            if parcel.sender == self._name:
                continue
            for delta in parcel.deltas:
                self._feed.take_in(delta)
            for call_id in parcel.ended:
                self._feed.forget(call_id)


def _merged(deltas: list[LiveDelta]) -> list[LiveDelta]:
    """Neighbouring pieces of the same text as one."""
    out: list[LiveDelta] = []
    for d in deltas:
        last = out[-1] if out else None
        if (
            last is not None
            and d.kind == last.kind != "progress"
            and d.call_id == last.call_id
            and d.offset == last.offset + len(last.text)
            and len(last.text) + len(d.text) <= PIECE
        ):
            out[-1] = msgspec.structs.replace(last, text=last.text + d.text)
        else:
            out.append(d)
    return out

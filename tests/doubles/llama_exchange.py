"""One HTTP exchange of the scripted llama-server: sending, pausing, and noticing that the client has left."""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from tests.doubles.llama_script import Request

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Exchange:
    """Sending side of one request. ``gone`` is set when the client has left or the server closes."""

    def __init__(self, request: Request, receive: Receive, send: Send, closing: asyncio.Event) -> None:
        self.request, self._send, self.gone = request, send, asyncio.Event()
        self._watchers = [asyncio.create_task(self._watch(receive)), asyncio.create_task(self._closes(closing))]

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.gone.set()

    async def _closes(self, closing: asyncio.Event) -> None:
        await closing.wait()
        self.gone.set()

    def close(self) -> None:
        """Stops watching the connection."""
        for watcher in self._watchers:
            watcher.cancel()

    async def pause(self, seconds: float) -> bool:
        """Waits, but no longer than the client does; whether the client is still there."""
        if seconds > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.gone.wait(), seconds)
        await asyncio.sleep(0)  # lets the watchers see a client that left
        return not self.gone.is_set()

    async def start(self, status: int, kind: str, length: int | None = None) -> None:
        """Sends status and headers; without a ``length`` (bytes) the body is chunked."""
        headers = [(b"server", b"llama.cpp"), (b"content-type", kind.encode())]
        if length is not None:
            headers.append((b"content-length", str(length).encode()))
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def body(self, data: bytes, more: bool = False) -> None:
        """Sends a piece of the body, the last one unless there is ``more``."""
        await self._send({"type": "http.response.body", "body": data, "more_body": more})

    async def text(self, text: str, status: int = 200, kind: str = "application/json; charset=utf-8") -> None:
        """A whole answer."""
        data = text.encode()
        await self.start(status, kind, len(data))
        await self.body(data)

    async def json(self, value: Any, status: int = 200) -> None:
        """A whole JSON answer."""
        await self.text(json.dumps(value, ensure_ascii=False, separators=(",", ":")), status)

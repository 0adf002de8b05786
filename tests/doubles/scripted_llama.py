"""A scripted llama-server: real HTTP, llama-server's dialect, answers from a script, faults on demand.

In a test::

    async with ScriptedLlama() as llama:
        llama.push("action", act("list_dir", path="."), done())
        llama.push("thinker", say("Two files.", reasoning="look at the list"))
        …                                   # point the real client at llama.url
        assert llama.requests[0].body["messages"][-1]["role"] == "user"

``ScriptedLlamaThread`` is the same for tests without a loop. As a process, with the port in the first line it prints::

    python -m tests.doubles.scripted_llama --script FILE.json --port 0

where the file holds ``{"server": {…LlamaApp arguments…}, "replies": [{"role": "action", "kind": "act", "tool": "x"},
…], "defaults": {"thinker": {"kind": "say", "text": "…"}}}``. ``GET /__script/requests`` shows what came, ``POST
/__script/push`` queues one more reply.
"""

import argparse
import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import uvicorn

from tests.doubles.llama_app import CHAT, LlamaApp
from tests.doubles.llama_script import (
    DEFAULT_SENTENCE,
    Reply,
    Request,
    Responder,
    act,
    calls,
    cut,
    directive,
    done,
    drop,
    endless,
    hang,
    http_error,
    loading,
    malformed_body,
    malformed_chunk,
    only_reasoning,
    overflow,
    reply_from_json,
    say,
    slow,
    stream_error,
    truncated,
)

__all__ = [
    "DEFAULT_SENTENCE",
    "LlamaApp",
    "Reply",
    "Request",
    "Responder",
    "ScriptedLlama",
    "ScriptedLlamaThread",
    "act",
    "calls",
    "cut",
    "directive",
    "done",
    "drop",
    "endless",
    "hang",
    "http_error",
    "loading",
    "malformed_body",
    "malformed_chunk",
    "only_reasoning",
    "overflow",
    "say",
    "slow",
    "stream_error",
    "truncated",
]


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves the signals to the test runner."""
        yield


class ScriptedLlama:
    """An async context manager. Keyword arguments are those of ``LlamaApp`` (n_ctx, slots, native_tools, api_key …);
    ``app`` has them as attributes that may be changed while it runs (``llama.app.loading = True``)."""

    def __init__(self, port: int = 0, **properties: Any) -> None:
        self.app = LlamaApp(**properties)
        self.port = port
        self._server: _Server | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """The base address, without ``/v1``."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def calls(self) -> list[Request]:
        """Every request so far, in order of arrival."""
        return self.app.calls

    @property
    def requests(self) -> list[Request]:
        """Chat completions only."""
        return [call for call in self.app.calls if call.path == CHAT]

    def push(self, role: str, *answers: Reply | Responder, when: Callable[[Request], bool] | None = None) -> None:
        """Queues answers for a role (``"*"``: any), each used once; a function makes one from the request."""
        self.app.script.push(role, *answers, when=when)

    def default(self, role: str, answer: Reply | Responder) -> None:
        """What a role answers when nothing is queued for it."""
        self.app.script.default(role, answer)

    def remaining(self, role: str = "*") -> int:
        """Queued answers that nobody has asked for yet."""
        return self.app.script.remaining(role)

    async def wait_until(self, condition: Callable[["ScriptedLlama"], bool], seconds: float = 20.0) -> None:
        """Waits for something to become true of the record; ``TimeoutError`` when it does not."""
        async with asyncio.timeout(seconds):
            while not condition(self):
                await asyncio.sleep(0.005)

    async def start(self) -> None:
        """Listens, on the same port as before if it had been started already."""
        listener = socket.socket(proto=socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        self.port = listener.getsockname()[1]
        self.app.closing = asyncio.Event()
        config = uvicorn.Config(
            self.app,
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",  # broken connections are on purpose here
            access_log=False,
            server_header=False,
            date_header=False,
        )
        self._server = _Server(config)
        self._task = asyncio.create_task(self._server.serve(sockets=[listener]))
        while not self._server.started:
            await asyncio.sleep(0.005)

    async def stop(self) -> None:
        """Breaks all connections and stops listening, as a killed server does. ``start`` may follow."""
        if self._server is None or self._task is None:
            return
        self.app.closing.set()
        for connection in list(self._server.server_state.connections):
            transport = getattr(connection, "transport", None)
            if transport is not None:
                transport.abort()
        self._server.should_exit = True
        await self._task
        self._server = self._task = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()


class ScriptedLlamaThread:
    """The same in a thread of its own, for tests without an event loop: ``with ScriptedLlamaThread() as llama``."""

    def __init__(self, port: int = 0, **properties: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.llama = ScriptedLlama(port, **properties)
        self.push, self.default, self.remaining = self.llama.push, self.llama.default, self.llama.remaining

    @property
    def url(self) -> str:
        """The base address, without ``/v1``."""
        return self.llama.url

    @property
    def requests(self) -> list[Request]:
        """Chat completions only."""
        return self.llama.requests

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self.llama.start(), self._loop).result(20)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self.llama.stop(), self._loop).result(20)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(20)
        self._loop.close()


def from_script(script: dict[str, Any], port: int = 0) -> ScriptedLlama:
    """A server with the properties, replies and defaults of a script file."""
    llama = ScriptedLlama(port, **script.get("server", {}))
    for entry in script.get("replies", ()):
        llama.push(entry.get("role", "*"), reply_from_json(entry))
    for role, entry in script.get("defaults", {}).items():
        llama.default(role, reply_from_json(entry))
    return llama


async def _serve(script: dict[str, Any], port: int) -> None:
    async with from_script(script, port) as llama:
        print(f"listening on {llama.url}", flush=True)
        await asyncio.Event().wait()


def main() -> None:
    """The command line; runs until it is killed."""
    parser = argparse.ArgumentParser(description="A scripted llama-server for tests.")
    parser.add_argument("--script", type=Path, help="JSON file with server, replies and defaults")
    parser.add_argument("--port", type=int, default=0, help="0 picks a free one; the first line of output tells it")
    options = parser.parse_args()
    script = json.loads(options.script.read_text(encoding="utf-8")) if options.script else {}
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(script, options.port))


if __name__ == "__main__":
    main()

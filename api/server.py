"""Running the application in this process until it is told to stop."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator

import uvicorn

from api.app import create_app
from api.runtime import Runtime
from api.settings import Settings
from domain.errors import SetupError


def listen(settings: Settings) -> socket.socket:
    """A bound socket, before anything else is started: a port in use should cost nobody a minute of loading."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((settings.host, settings.port))
    except OSError as error:
        sock.close()
        raise SetupError(
            f"can't listen on {settings.host}:{settings.port}: {error.strerror}. Another `ducklm up` may be running; "
            "stop it, or choose another port with --port or DUCKLM_PORT"
        ) from error
    sock.listen(256)
    return sock


def address(sock: socket.socket) -> str:
    host, port = sock.getsockname()[:2]
    shown = "127.0.0.1" if host in ("0.0.0.0", "::") else host
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"


class _Server(uvicorn.Server):
    """uvicorn without its own signal handling: the program stops its parts in its own order."""

    @contextlib.contextmanager
    def capture_signals(self):  # type: ignore[no-untyped-def]
        yield


@contextlib.asynccontextmanager
async def running(runtime: Runtime, sock: socket.socket) -> AsyncIterator[None]:
    """The runtime started and its application answering on ``sock`` while the context is open."""
    config = uvicorn.Config(
        create_app(runtime),
        log_level="warning",
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=2,
        timeout_keep_alive=15,
        h11_max_incomplete_event_size=64 * 1024,
        server_header=False,
    )
    server = _Server(config)
    await runtime.start()
    serving = asyncio.create_task(server.serve(sockets=[sock]))
    try:
        while not server.started and not serving.done():  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)
        yield
    finally:
        runtime.stopping.set()
        server.should_exit = True
        await asyncio.wait([serving], timeout=5)
        await runtime.stop()


@contextlib.contextmanager
def stop_signals() -> Iterator[asyncio.Event]:
    """An event that SIGINT and SIGTERM set while the context is open: also during the start, which then ends in order."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for sig in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(sig, stopping.set)
    try:
        yield stopping
    finally:
        for sig in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(sig)


async def serve(runtime: Runtime, sock: socket.socket, on_ready: Callable[[], None]) -> None:
    """Serves until ``runtime.stopping`` is set; ``on_ready`` is called when requests are answered."""
    async with running(runtime, sock):
        if not runtime.stopping.is_set():
            on_ready()
        await runtime.stopping.wait()

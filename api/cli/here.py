"""A DuckLM in this process, for the time of a question that is asked while none runs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec.structs import replace

from api.bootstrap import make_runtime
from api.cli.client import Server, find_server
from api.cli.running import only_one, write_server_file
from api.database import Report, prepare_home
from api.logs import configure_logs
from api.server import address, listen, running
from api.settings import Settings
from domain.errors import SetupError

STARTING_SECONDS = 60


@asynccontextmanager
async def server_here(settings: Settings, report: Report) -> AsyncIterator[tuple[Server, bool]]:
    """A server that is started here and stopped afterwards (then True), or the one that somebody else is just starting.
    Raises ``SetupError``."""
    home = prepare_home(settings)
    lock = only_one(home)
    try:
        lock.__enter__()
    except SetupError:
        report("another DuckLM is starting")
        yield await _starting(settings), False
        return
    try:
        async with _started(settings, report) as own:
            yield own, True
    finally:
        lock.__exit__(None, None, None)


async def _starting(settings: Settings) -> Server:
    for _ in range(STARTING_SECONDS * 2):
        await asyncio.sleep(0.5)
        server = await asyncio.to_thread(find_server, settings)
        if server is not None:
            return server
    raise SetupError(f"another DuckLM holds {settings.home_path} and does not answer; see its logs/ducklm.log")


@asynccontextmanager
async def _started(settings: Settings, report: Report) -> AsyncIterator[Server]:
    own = replace(settings, host="127.0.0.1", port=0)
    configure_logs(own.log_level, own.home_path / "logs" / "ducklm.log")
    sock = listen(own)
    try:
        runtime = await make_runtime(own, report)
        async with running(runtime, sock):
            if runtime.model_engine is not None:
                # A question that finds the model loading would only be paused at once.
                await runtime.model_engine.wait_ready()
            server = Server(address(sock), runtime.token)
            write_server_file(own.home_path, server.url)
            yield server
            report("stopping")
    finally:
        sock.close()

"""Whether a role's model really answers: a completion of one token."""

import asyncio
import time

from msgspec import Struct

from adapters.llm.server import ModelServer
from domain.errors import ModelError
from domain.messages import Message
from domain.model import Delta, ModelRequest, RoleName


class Ping(Struct, frozen=True):
    """``latency_ms`` until the whole answer was there, 0 when ``error`` says why there is none."""

    role: RoleName
    ok: bool
    latency_ms: float
    model: str
    error: str = ""


async def ping_server(server: ModelServer, role: RoleName, limit: float) -> Ping:
    """Asks once, without retries, for at most ``limit`` seconds. Never raises ``ModelError``."""
    request = ModelRequest(role, "ping", "ping", (Message("user", "ping"),), temperature=0.0, max_output_tokens=1)
    started = time.perf_counter()
    try:
        async with asyncio.timeout(limit):
            reply = await server.complete(request, _ignore)
    except ModelError as error:
        return Ping(role, False, 0.0, server.model, str(error))
    except TimeoutError:
        busy = "it is up, so probably busy with another request" if await server.link.alive() else "it is not answering"
        return Ping(role, False, 0.0, server.model, f"no answer from {server.link.shown} in {limit:.0f} s; {busy}")
    return Ping(role, True, (time.perf_counter() - started) * 1000.0, reply.model or server.model)


def _ignore(_delta: Delta) -> None:
    """Nobody watches a ping."""

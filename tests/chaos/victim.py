"""``ducklm up`` that kills itself (SIGKILL) at a chosen point.

    python -m tests.chaos.victim POINT      # such as before:task.tool_started.v1, after:task.model_replied.v1, tool, projection

Everything it was told to be in the log goes to ``$VICTIM_ACKNOWLEDGED``, one event id a line, before anybody else hears of it."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from adapters.llm import HttpModelClient
from adapters.store.event_store import EventStore
from adapters.tools.gateway import Gateway
from domain.events import Envelope, tag_of
from domain.tools import ToolInvocation, ToolResult
from projections import checkpoints

POINT = sys.argv[1] if len(sys.argv) > 1 else ""


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


_put = EventStore.put
_run = Gateway.run
_chat = HttpModelClient.chat
_move = checkpoints.move
_move_all = checkpoints.move_all


def put(self: EventStore, envelopes: list[Envelope], command_key: str = "") -> list[Envelope]:
    tags = {tag_of(e.data) for e in envelopes}
    when, _, tag = POINT.partition(":")
    if when == "before" and tag in tags:
        die()
    stored = _put(self, envelopes, command_key)
    with open(os.environ["VICTIM_ACKNOWLEDGED"], "a") as file:
        file.writelines(f"{e.id}\n" for e in stored)
        file.flush()
        os.fsync(file.fileno())
    if when == "after" and tag in tags:
        die()
    return stored


async def run(self: Gateway, call: ToolInvocation, on_output: Callable[[str], None]) -> ToolResult:
    if f"tool:{call.tool}" == POINT:
        asyncio.get_running_loop().call_later(0.4, die)
    result = await _run(self, call, on_output)
    if f"effect:{call.tool}" == POINT:
        die()
    return result


async def chat(self: HttpModelClient, *args: Any) -> Any:
    reply = await _chat(self, *args)
    if POINT == "reply":
        die()
    return reply


def move(conn: Any, name: str, position: int, **changes: Any) -> None:
    if f"projection:{name}" == POINT and position > 5:
        die()
    _move(conn, name, position, **changes)


def move_all(conn: Any, names: Sequence[str], position: int) -> None:
    """The tables are written, the checkpoint is not: the transaction dies with the process."""
    if POINT.partition(":")[2] in names and POINT.startswith("projection:") and position > 5:
        die()
    _move_all(conn, names, position)


EventStore.put = put  # type: ignore[method-assign]
Gateway.run = run  # type: ignore[method-assign]
HttpModelClient.chat = chat  # type: ignore[method-assign]
checkpoints.move = move
checkpoints.move_all = move_all

if __name__ == "__main__":
    from api.cli.up import up
    from api.settings import load_settings

    up(load_settings())

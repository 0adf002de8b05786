"""``ducklm ask`` and ``ducklm tasks continue``: a turn at the terminal."""

import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from api.cli.options import ONLINE, Flag, Online


async def ask(
    *message: Annotated[str, Parameter(help="What to ask; several words need no quotes. Text from a pipe is added.")],
    last: Annotated[bool, Flag, Parameter(name=["--continue", "-c"], help="In the last conversation.")] = False,
    conversation: Annotated[str | None, Parameter(help="In this conversation.")] = None,
    workspace: Annotated[Path | None, Parameter(name=["--workspace", "-w"], help="The folder to work in.")] = None,
    reflect: Annotated[bool, Parameter(negative="--no-reflect", help="Look back when it is done.")] = True,
    yes: Annotated[bool, Flag, Parameter(name=["--yes", "-y"], help="Allow once whatever it asks for.")] = False,
    options: Online = ONLINE,
) -> int:
    """Ask something, and watch the work and the answer as they come. What needs approval is asked right here.

    Without a running DuckLM one is started for the time of the question. Ctrl-C cancels the task, a second one leaves.
    The answer goes to standard output, everything else to standard error.

    ```
    ducklm ask "why do the tests fail?" --workspace ~/src/duck
    git diff | ducklm ask "review this" > review.md
    ```
    """
    if last and conversation:
        from domain.errors import BadInput

        raise BadInput("--continue and --conversation exclude each other")
    text = _message(" ".join(message))

    async def body(client: Any, is_local: bool) -> dict[str, Any]:
        folder = str(workspace.expanduser().resolve() if is_local else workspace) if workspace else None
        target = await _last_conversation(client) if last else conversation
        return {"message": text, "conversation_id": target, "workspace": folder, "reflect": reflect}

    return await hold_turn(options, yes, lambda _: "/v1/chat/stream", body)


async def hold_turn(
    options: Online, yes: bool, path: Callable[[Any], Any], body: Callable[[Any, bool], Any], start_here: bool = True
) -> int:
    """Runs one turn against the server that runs, or one that is started for it. ``path`` and ``body`` get the client."""
    from api.cli.client import Client, Server, find_server, need_server
    from api.cli.output import err, print_json
    from api.cli.screen import Screen, Terminal
    from api.cli.turn import Manner, Turn

    settings = options.settings()
    screen = Screen() if options.json else Terminal()

    async def turn(server: Server, here: bool) -> int:
        watched = err.is_terminal and not options.json
        manner = Manner(watched and sys.stdin.isatty(), watched, yes, here)
        async with Client(server) as client:
            where = path(client)
            target = where if isinstance(where, str) else await where
            held = Turn(client, screen, manner)
            answer, code = await held.run(target, await body(client, server.is_local))
        if options.json:
            print_json(answer)
        return code

    find = find_server if start_here else need_server
    running = await asyncio.to_thread(find, settings, options.url)
    if running is not None:
        return await turn(running, False)
    # The whole program is loaded only where it is needed.
    from api.cli.here import server_here
    from api.cli.up import reporter

    report = reporter(time.monotonic(), screen.note if err.is_terminal else lambda _: None)
    async with server_here(settings, report) as (server, here):
        return await turn(server, here)


def _message(given: str) -> str:
    """The words of the command line and the text of the pipe."""
    from domain.errors import BadInput

    piped = "" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.buffer.read().decode("utf-8", "replace")
    text = "\n\n".join(part for part in (given, piped.rstrip("\n")) if part.strip())
    if not text:
        raise BadInput('there is no message: `ducklm ask "what is in this folder?"`')
    return text


async def _last_conversation(client: Any) -> str:
    from domain.errors import NotFound

    found = await client.items("/v1/conversations", 1, archived=False)
    if not found:
        raise NotFound("there is no conversation to go on with yet; leave out --continue")
    return str(found[0]["conversation_id"])

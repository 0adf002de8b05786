"""``shell_exec``: one command line, run by bash in the workspace, with everything it starts under control."""

import asyncio
import os
import sys
import time
from collections.abc import Callable

from msgspec import Struct

from adapters.tools.capture import Capture
from adapters.tools.guard import within
from adapters.tools.supervision import Ending, Supervised
from adapters.tools.workspace import Workspace
from domain.tools import ShellExec, ToolResult

MAX_COMMAND = 100_000
"""Bytes; the kernel takes 128 KiB for one argument."""

_FALLBACK_PATH = "/usr/local/bin:/usr/bin:/bin"
_NOTES_ROOM = 512


class ShellLimits(Struct, frozen=True):
    """``kept``: bytes of output in the result; ``output``: bytes after which the command is killed; ``processes``: how
    many it may have at once."""

    kept: int = 64 * 1024
    output: int = 100 * 1024 * 1024
    processes: int = 1000


async def shell_exec(
    workspace: Workspace, args: ShellExec, call_id: str, on_output: Callable[[str], None], limits: ShellLimits
) -> ToolResult:
    """Runs ``args.command``. Output and errors come in one stream, as text, to ``on_output`` while it runs.

    The result is ``ok`` when the command ended by itself with 0. ``data``: ``duration_ms``, ``timed_out``,
    ``output_limit``, ``process_limit``, ``left_running`` (background processes that were killed at the end).
    Cancelling ends every process within a second. Raises ``ToolError`` when it could not be started.
    """
    await asyncio.sleep(args.wait)
    capture = Capture(limits.kept - _NOTES_ROOM, on_output)
    begun = time.monotonic()
    running = await Supervised.start(
        args.command,
        folder=workspace.root,
        environment=clean_environment(workspace.real),
        call_id=call_id,
        max_processes=limits.processes,
    )
    try:
        stopped = await _follow(running, capture, args.timeout, limits.output)
    except BaseException:
        running.stop("c")
        await asyncio.wait([asyncio.ensure_future(running.ended())])
        raise
    ending = await _shielded(running, capture, limits.output)
    capture.close()
    return _result(args, limits, capture, stopped, ending, time.monotonic() - begun)


async def _follow(running: Supervised, capture: Capture, timeout: float, limit: int) -> str:
    """Feeds the output to ``capture`` until the command has ended. Returns why it was stopped, if it was."""
    try:
        async with asyncio.timeout(timeout) as clock:
            while raw := await running.read():
                capture.feed(raw)
                if capture.size > limit:
                    running.stop("k")
                    return "output"
            await running.exited()
            return ""
    except TimeoutError:
        if not clock.expired():
            raise
    running.stop("t")
    return "timeout"


async def _shielded(running: Supervised, capture: Capture, limit: int) -> Ending:
    """The ending, also when cancelled while waiting for it: then first the ending, then the cancellation."""

    def keep(raw: bytes) -> None:
        # What a program says when it is asked to end is often the interesting part.
        if capture.size <= limit:
            capture.feed(raw)

    waiting = asyncio.ensure_future(running.ended(keep))
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        await asyncio.wait([waiting])
        raise


def _result(
    args: ShellExec, limits: ShellLimits, capture: Capture, stopped: str, ending: Ending, seconds: float
) -> ToolResult:
    notes = []
    if stopped == "timeout":
        notes.append(f"timed out after {args.timeout} s; everything it had started was ended")
    if stopped == "output":
        notes.append(f"killed: more than {limits.output} bytes of output")
    if ending.reason == "processes":
        notes.append(f"killed: more than {limits.processes} processes at once")
    if ending.reason == "lost":
        notes.append("the process that watched over the command was killed, and the command with it")
    if ending.left:
        notes.append(f"background processes still running at the end were killed: {ending.left}")
    by_itself = not stopped and ending.reason == "ended"
    output = capture.text()
    if notes:
        separator = "\n" if output and not output.endswith("\n") else ""
        output += separator + "\n".join(f"[{note}]" for note in notes)
    code = ending.code if ending.code >= 0 else 128 - ending.code  # as shells report a signal
    return ToolResult(
        ok=by_itself and code == 0,
        output=output,
        exit_code=code if by_itself else None,
        size=capture.size,
        truncated=capture.truncated or stopped == "output",
        data={
            "duration_ms": round(seconds * 1000),
            "timed_out": stopped == "timeout",
            "output_limit": stopped == "output",
            "process_limit": ending.reason == "processes",
            "left_running": ending.left,
        },
    )


def clean_environment(home: str) -> dict[str, str]:
    """What a command gets to see: nothing of ours but the search path, without our own Python and without folders that
    the workspace could fill."""
    ours = os.path.join(sys.prefix, "bin") if sys.prefix != sys.base_prefix else ""
    path = [
        folder
        for folder in os.environ.get("PATH", _FALLBACK_PATH).split(":")
        if folder.startswith("/") and folder != ours and not within(os.path.realpath(folder), home)
    ]
    return {
        "PATH": ":".join(path) or _FALLBACK_PATH,
        "HOME": home,
        "LANG": "C.UTF-8",
        "TERM": "dumb",
    }

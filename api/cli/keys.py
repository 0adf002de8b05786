"""Keys and lines from the terminal, on the event loop: work goes on, and Ctrl-C works, while a person thinks."""

import asyncio
import os
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def key_by_key() -> Iterator[None]:
    """Keys come at once and unseen. Open it before the question is shown: what was typed earlier is no answer to it."""
    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)
    tty.setcbreak(fd, termios.TCSAFLUSH)
    try:
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)


async def next_key(allowed: str) -> str:
    """The next key that is one of ``allowed``."""
    while True:
        key = (await _read(sys.stdin.fileno())).lower()
        # Several characters at once are text that was pasted or meant for something else, and no answer.
        if len(key) == 1 and key in allowed:
            return key


async def read_line() -> str:
    """A line, edited and echoed by the terminal; "" at its end of file."""
    text = ""
    while not text.endswith("\n"):
        more = await _read(sys.stdin.fileno())
        if not more:
            break
        text += more
    return text.strip()


async def _read(fd: int) -> str:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def tell() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(fd, tell)
    try:
        await ready
    finally:
        loop.remove_reader(fd)
    return os.read(fd, 4096).decode("utf-8", "replace")

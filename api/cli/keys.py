"""Keys and lines from the terminal, on the event loop: work goes on, and Ctrl-C works, while a person thinks."""

import asyncio
import os
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager


async def read_key(allowed: str) -> str:
    """The next key that is one of ``allowed``. What was typed before the question does not count as an answer."""
    fd = sys.stdin.fileno()
    with _key_by_key(fd):
        termios.tcflush(fd, termios.TCIFLUSH)
        while True:
            key = (await _read(fd)).lower()
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


@contextmanager
def _key_by_key(fd: int) -> Iterator[None]:
    before = termios.tcgetattr(fd)
    tty.setcbreak(fd)
    try:
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)


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

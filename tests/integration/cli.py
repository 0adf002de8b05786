"""Runs ``ducklm`` as a process of its own, at a pipe or at a terminal."""

import asyncio
import contextlib
import fcntl
import json
import os
import pty
import re
import struct
import sys
import termios
from collections.abc import AsyncIterator
from typing import Any

from api.settings import Settings
from tests.program import TOKEN


class Done:
    """A command that has ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Cli:
    """Runs ``ducklm`` as a process of its own."""

    def __init__(self, settings: Settings, url: str) -> None:
        self._started: list[asyncio.subprocess.Process] = []
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("DUCKLM_")} | {
            "DUCKLM_URL": url,
            "DUCKLM_TOKEN": TOKEN,
            "DUCKLM_HOME": settings.home,
            "DUCKLM_DATABASE_URL": settings.database_url,
            "DUCKLM_LLAMA_URL": settings.llama_url,
        }

    async def start(
        self, *arguments: str, stdin: Any = asyncio.subprocess.DEVNULL, **env: str
    ) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        command = (sys.executable, "-m", "api.cli.main", *arguments)
        process = await asyncio.create_subprocess_exec(
            *command, stdin=stdin, stdout=pipe, stderr=pipe, env=self.env | env
        )
        self._started.append(process)
        return process

    def kill_what_runs(self) -> None:
        """A failed test leaves nothing behind."""
        for process in self._started:
            if process.returncode is None:
                process.kill()

    async def __call__(self, *arguments: str, piped: str | None = None, **env: str) -> Done:
        process = await self.start(
            *arguments, stdin=asyncio.subprocess.PIPE if piped is not None else asyncio.subprocess.DEVNULL, **env
        )
        try:
            async with asyncio.timeout(40):
                out, err = await process.communicate(piped.encode() if piped is not None else None)
        finally:
            if process.returncode is None:
                process.kill()
        assert "Traceback" not in err.decode()
        return Done(process.returncode or 0, out.decode(), err.decode())

    @contextlib.asynccontextmanager
    async def at_terminal(self, *arguments: str, **env: str) -> AsyncIterator["Typed"]:
        """The command at a terminal of 100 columns; it is killed if the test leaves it running."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "api.cli.main", *arguments,
            stdin=slave, stdout=slave, stderr=slave, env=self.env | {"TERM": "xterm-256color"} | env,
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0) and None,
        )  # fmt: skip
        os.close(slave)
        typed = Typed(master, process)
        try:
            yield typed
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
            asyncio.get_running_loop().remove_reader(master)
            os.close(master)


_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Typed:
    """A terminal: what was shown so far, and keys to press."""

    def __init__(self, master: int, process: asyncio.subprocess.Process) -> None:
        self._master = master
        self._process = process
        self._raw = b""
        asyncio.get_running_loop().add_reader(master, self._read)

    def _read(self) -> None:
        try:
            self._raw += os.read(self._master, 65_536)
        except OSError:  # the other side is closed
            asyncio.get_running_loop().remove_reader(self._master)

    @property
    def raw(self) -> str:
        return self._raw.decode("utf-8", "replace")

    @property
    def text(self) -> str:
        """Without colours and status lines that were wiped away."""
        lines = _ESCAPES.sub(lambda m: "\0" if m[0] == "\x1b[K" else "", self.raw).replace("\r\n", "\n").split("\n")
        return "\n".join(line.rsplit("\r\0", 1)[-1] for line in lines)

    def press(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    async def until(self, text: str, seconds: float = 30) -> None:
        """Waits until a text is shown."""
        try:
            async with asyncio.timeout(seconds):
                while text not in self.text:
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"{text!r} was not shown, but:\n{self.text}") from None

    async def code(self, seconds: float = 30) -> int:
        """The exit code, when the command has ended."""
        async with asyncio.timeout(seconds):
            return await self._process.wait()

"""The worker's side of :mod:`adapters.tools.keeper`: start, stop, wait, and clean up when the keeper was killed."""

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from domain.errors import ToolError

MARK = "DUCKLM_CALL_ID"
"""Environment variable of every process of a call."""

_KEEPER = str(Path(__file__).with_name("keeper.py"))
_PATIENCE = 10.0
"""Seconds for the keeper to end by itself after it was told to; it needs about one."""

_LINGER = 1.0
"""Seconds to wait for the rest of the output when nothing is left of the command that could write it."""
_PIECE = 64 * 1024

Manner = Literal["t", "c", "k"]
"""See the keeper: terminate (0.8 s of grace), cancel (0.3 s), kill."""


class Ending(Struct, frozen=True):
    """How a command ended: exit code (minus the signal that killed it), how many processes it had left behind (they
    were killed), and why: ``ended``, ``stopped``, ``processes`` (too many), ``lost`` (the keeper was killed)."""

    code: int
    left: int
    reason: str


class Supervised:
    """A running command."""

    def __init__(self, process: Process, status: int, call_id: str) -> None:
        assert process.stdout is not None
        self._output = process.stdout
        self._process = process
        self._status = status
        self._call_id = call_id
        self._watching = asyncio.ensure_future(self._watch())

    @classmethod
    async def start(
        cls, command: str, *, folder: int, environment: Mapping[str, str], call_id: str, max_processes: int
    ) -> "Supervised":
        """Starts ``command`` in the folder with the handle ``folder``. Raises ``ToolError``."""
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        script = (sys.executable, "-I", "-S", _KEEPER, str(writer), str(max_processes), command)
        starting = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                *script,
                stdin=PIPE,
                stdout=PIPE,
                stderr=STDOUT,
                cwd=f"/proc/self/fd/{folder}",  # the folder that was opened, whatever its path means by now
                env={**environment, MARK: call_id},
                start_new_session=True,
                pass_fds=(writer,),
            )
        )
        try:
            await asyncio.wait([starting])
            process = starting.result()
        except asyncio.CancelledError:
            # Half started is the one state that can't be left: it is started, and then ended.
            await asyncio.wait([starting])
            if not starting.exception():
                started = cls(starting.result(), reader, call_id)
                started.stop("k")
                await started.ended()
            else:
                os.close(reader)
            raise
        except (OSError, ValueError) as error:
            os.close(reader)
            raise ToolError(f"the command could not be started: {error}") from error
        finally:
            os.close(writer)
        return cls(process, reader, call_id)

    def stop(self, manner: Manner) -> None:
        """Tells the keeper to end everything; returns at once. Harmless when all has ended."""
        control = self._process.stdin
        if control is not None and not control.is_closing():
            with contextlib.suppress(OSError):
                control.write(manner.encode())

    async def read(self) -> bytes:
        """The next piece of output; empty at its end, which is when all processes have ended."""
        reading = asyncio.ensure_future(self._output.read(_PIECE))
        try:
            await asyncio.wait({reading, self._watching}, return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                await asyncio.wait({reading}, timeout=_LINGER)
            return reading.result() if reading.done() else b""
        finally:
            if not reading.done():
                reading.cancel()
                await asyncio.wait({reading})

    async def ended(self, on_rest: Callable[[bytes], None] = lambda raw: None) -> Ending:
        """Hands over what is left of the output, and waits until nothing is left of the command."""
        try:
            async with asyncio.timeout(_PATIENCE):
                while raw := await self.read():
                    on_rest(raw)
                await asyncio.wait({self._watching})
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        return await asyncio.shield(self._watching)

    async def exited(self) -> None:
        """Returns when nothing is left of the command."""
        await asyncio.wait({self._watching})

    async def _watch(self) -> Ending:
        """Waits for the keeper's report. When it was killed its work is done from here, as well as it can be."""
        try:
            # Not by waiting for the process: asyncio calls it ended only when nobody holds the output any more.
            await _readable(self._status)
            report = _parsed(os.read(self._status, 100))
        finally:
            os.close(self._status)
        if report is None:
            await asyncio.to_thread(kill_marked, self._call_id)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LINGER):
                await self._process.wait()
        return report or Ending(-signal.SIGKILL, 0, "lost")


async def _readable(handle: int) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def tell() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(handle, tell)
    try:
        await ready
    finally:
        loop.remove_reader(handle)


def _parsed(report: bytes) -> Ending | None:
    """The keeper's report; ``None`` when it is not there, which is when the keeper was killed."""
    try:
        code, left, reason = report.decode().split()
        return Ending(int(code), int(left), reason)
    except ValueError:
        return None


def kill_marked(call_id: str) -> None:
    """Kills every process whose environment says that it belongs to a call: the second line, for when the keeper is
    gone. Twice, for what was forked meanwhile."""
    mark = f"{MARK}={call_id}".encode()
    for _ in range(2):
        for name in os.listdir("/proc"):
            if not name.isdigit() or int(name) == os.getpid():
                continue
            with contextlib.suppress(OSError):
                if mark in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                    os.kill(int(name), signal.SIGKILL)

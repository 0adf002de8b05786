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

Manner = Literal["t", "c", "k"]
"""See the keeper: terminate (0.8 s of grace), cancel (0.3 s), kill."""


class Ending(Struct, frozen=True):
    """How a command ended: exit code (minus the signal that killed it), how many processes it had left behind (they
    were killed), and why: ``ended``, ``stopped``, ``processes`` (too many), ``lost`` (the keeper was killed)."""

    code: int
    left: int
    reason: str


class Supervised:
    """A running command. ``stdout`` ends when all of its processes have ended."""

    def __init__(self, process: Process, status: int, call_id: str) -> None:
        assert process.stdout is not None
        self.stdout = process.stdout
        self._process = process
        self._status = status
        self._call_id = call_id

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

    async def exited(self) -> None:
        """Returns when the keeper has ended."""
        await self._process.wait()

    async def ended(self, on_rest: Callable[[bytes], None] = lambda raw: None) -> Ending:
        """Hands over what is left of the output, waits for the end, and cleans up. Call it exactly once."""
        try:
            async with asyncio.timeout(_PATIENCE):
                while raw := await self.stdout.read(65536):
                    on_rest(raw)
                await self._process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        finally:
            report = self._report()
        if report is not None:
            return report
        await asyncio.to_thread(kill_marked, self._call_id)
        return Ending(-signal.SIGKILL, 0, "lost")

    def _report(self) -> Ending | None:
        try:
            code, left, reason = os.read(self._status, 100).decode().split()
            return Ending(int(code), int(left), reason)
        except (OSError, ValueError):
            return None
        finally:
            os.close(self._status)


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

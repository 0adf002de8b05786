"""An engine that is ours: started, watched, started again when it dies, stopped."""

import asyncio
import contextlib
import os
import shutil
import signal
import time
from pathlib import Path

import httpx

from adapters.engine import probe
from adapters.engine.command import Launch
from adapters.engine.diagnosis import diagnose, log_tail
from adapters.engine.handle import EngineHandle
from adapters.engine.settings import Engine, Report

_POLL_S = 0.1
_LONGEST_BACKOFF_S = 60.0
_STABLE_S = 300.0
_GRACE_S = 10.0
_LOG_LIMIT = 20 * 1024 * 1024
_LOG_CHECK_S = 60.0


def backoff(failures: int) -> float:
    """Seconds to wait before start number ``failures`` + 1: 1, 2, 4 … 60."""
    return min(_LONGEST_BACKOFF_S, 2.0 ** max(0, failures - 1))


class ManagedEngine(EngineHandle):
    """A child process in a session of its own (a Ctrl-C in the terminal is for us, not for it), logging to a file.

    The first start either becomes ready or fails for good. After that a dead engine is started again, for ever, at
    growing intervals; the state says so meanwhile."""

    def __init__(self, info: Engine, api_key: str, launch: Launch, log: Path, report: Report) -> None:
        super().__init__(info, api_key, report)
        self.log = log
        self.pid = 0
        self._launch = launch

    async def _run(self) -> None:
        failures = 0
        while True:
            since = time.monotonic()
            try:
                reason = await self._one_life()
            except OSError as error:
                reason = f"the engine could not be started: {error}"
            if self._stopping.is_set():
                return
            if not self._settled.is_set():
                self._turn("failed", reason)
                return
            failures = 1 if time.monotonic() - since > _STABLE_S else failures + 1
            pause = backoff(failures)
            self._turn("failed", f"{reason}\nIt is started again in {pause:.0f} s (failure {failures}).")
            if not await self._rest(pause):
                return

    async def _one_life(self) -> str:
        """From start to end of one process; why it ended."""
        self._turn("starting", f"{self.info.kind} with {self.info.model}")
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._cut_log()
        offset = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as out:
            process = await asyncio.create_subprocess_exec(
                *self._launch.command,
                env=self._launch.env,
                stdin=asyncio.subprocess.PIPE,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        self.pid = process.pid
        ended = asyncio.create_task(process.wait())
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await self._greet(process)
            await self._until_ready(ended)
            while not (ended.done() or stopping.done()):
                await asyncio.wait((ended, stopping), timeout=_LOG_CHECK_S, return_when=asyncio.FIRST_COMPLETED)
                self._cut_log()
        finally:
            stopping.cancel()
            await asyncio.shield(self._end(process.pid, ended))
        return diagnose(self.info, ended.result(), log_tail(self.log, offset), self.log)

    async def _greet(self, process: asyncio.subprocess.Process) -> None:
        """Standard input stays open: the child takes its end for our death."""
        if process.stdin is not None and self._launch.stdin:
            process.stdin.write(self._launch.stdin)
            with contextlib.suppress(ConnectionError):
                await process.stdin.drain()

    async def _until_ready(self, ended: "asyncio.Task[int]") -> None:
        async with probe.client(self.info.url, self.api_key) as http:
            while not ended.done():
                condition = await probe.health(http)
                if condition == "ready" and await self._is_ours(http):
                    self._turn("ready")
                    return
                if condition == "loading":
                    self._turn("loading", f"loading {self.info.model}")
                if not await self._rest(_POLL_S):
                    return

    async def _is_ours(self, http: httpx.AsyncClient) -> bool:
        """Another program may have taken the port before ours; it does not know our key."""
        try:
            self.info = await probe.looked_up(http, self.info)
        except probe.KeyRefused:
            return False
        return self.info.slots > 0

    async def _end(self, pid: int, ended: "asyncio.Task[int]") -> None:
        """Ends the whole process group: kindly, then not."""
        for number, patience in ((signal.SIGTERM, _GRACE_S), (signal.SIGKILL, None)):
            if ended.done():  # the number may be somebody else's by now
                return
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, number)
            await asyncio.wait((ended,), timeout=patience)

    def _cut_log(self) -> None:
        """Copies a log that has grown too long aside and empties it; the engine appends to the same file."""
        if self.log.exists() and self.log.stat().st_size > _LOG_LIMIT:
            shutil.copyfile(self.log, self.log.with_suffix(".log.1"))
            os.truncate(self.log, 0)

"""A running engine as its user holds it."""

import asyncio
import contextlib
from abc import ABC, abstractmethod

import httpx
import msgspec

from adapters.engine import probe
from adapters.engine.settings import Engine, EngineState, Report, StateName
from domain.errors import SetupError

_EXTERNAL_POLL_S = 5.0


class EngineHandle(ABC):
    """``info`` and ``state`` are always current; ``stop`` ends it and may be called twice."""

    def __init__(self, info: Engine, api_key: str, report: Report) -> None:
        self.info = info
        self.api_key = api_key
        self._report = report
        self._state = EngineState("starting")
        self._settled = asyncio.Event()
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def state(self) -> EngineState:
        """How it is now."""
        return self._state

    def launch(self) -> None:
        """Begins to watch it, in the background."""
        self._task = asyncio.create_task(self._run())

    async def wait_ready(self) -> None:
        """Returns when it is ready for the first time; raises ``SetupError`` when it will not be."""
        await self._settled.wait()
        if self._state.name == "failed":
            raise SetupError(self._state.detail)

    async def stop(self) -> None:
        """Ends it and waits until it is gone. An external server is left alone."""
        self._stopping.set()
        if self._task is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        self._turn("stopped")

    @abstractmethod
    async def _run(self) -> None: ...

    def _turn(self, name: StateName, detail: str = "") -> None:
        """Takes on a state and reports it if it is new."""
        if (name, detail) != (self._state.name, self._state.detail):
            self._state = EngineState(name, detail)
            self._report(f"engine {name}" + (f": {detail}" if detail else ""), None)
        if name in ("ready", "failed"):
            self._settled.set()

    async def _rest(self, seconds: float) -> bool:
        """Waits; whether to go on (False: it is being stopped)."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)
        return not self._stopping.is_set()


class ExternalEngine(EngineHandle):
    """Somebody else's server: asked how it is, again and again, never started or stopped."""

    async def _run(self) -> None:
        async with probe.client(self.info.url, self.api_key) as http:
            while True:
                await self._ask(http)
                if not await self._rest(_EXTERNAL_POLL_S):
                    return

    async def wait_ready(self) -> None:
        """Returns after the first answer, or none: a server that is away may come, and that is no error of ours."""
        await self._settled.wait()

    async def _ask(self, http: httpx.AsyncClient) -> None:
        url, condition = self.info.url, await probe.health(http)
        if condition == "loading":
            self._turn("loading", f"the server at {url} is loading its model")
            self._settled.set()
        elif condition == "silent":
            self._turn("failed", f"nothing answers at {url}: start the server there, or change DUCKLM_LLAMA_URL")
        else:
            try:
                # asked again each time: the model behind an address can be swapped
                self.info = await probe.looked_up(http, msgspec.structs.replace(self.info, model=""))
                self._turn("ready")
            except probe.KeyRefused:
                self._turn("failed", f"the server at {url} refuses our API key: set the right one")

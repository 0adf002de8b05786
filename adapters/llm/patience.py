"""How long to wait for a server that says nothing."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from domain.errors import ModelTimeout

T = TypeVar("T")


class Patience:
    """Limits on silence, in seconds. Any byte counts as life, prefill progress and pings included.

    Before the first token silence is normal on local hardware (a long prompt, a busy slot): it may last
    ``prefill`` seconds, but after each ``idle`` seconds ``alive`` is asked, so that a stopped process is
    noticed soon. Once tokens flow (``generating``), ``idle`` is the limit.
    """

    def __init__(self, idle: float, prefill: float, alive: Callable[[], Awaitable[bool]], url: str) -> None:
        self.idle = idle
        self.prefill = prefill
        self.generating = False
        self._alive = alive
        self._url = url

    async def wait(self, step: Coroutine[Any, Any, T]) -> T:
        """The result of ``step``, which is cancelled and over when this returns or raises.

        Raises ``ModelTimeout``."""
        task = asyncio.ensure_future(step)
        started = time.monotonic()
        try:
            while True:
                left = self.prefill - (time.monotonic() - started)
                done, _ = await asyncio.wait({task}, timeout=self.idle if self.generating else min(self.idle, left))
                if done:
                    return task.result()
                await self._judge(time.monotonic() - started)
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task})

    async def _judge(self, silent: float) -> None:
        if self.generating:
            raise ModelTimeout(
                f"{self._url} stopped in the middle of an answer: nothing came for {silent:.0f} s. "
                "The partial answer was dropped; look at the model server's log, then try again."
            )
        if silent >= self.prefill:
            raise ModelTimeout(
                f"{self._url} did not begin to answer within {silent:.0f} s. It may be busy with another request "
                "or too slow for this prompt; raise the prefill limit or shorten the context."
            )
        if not await self._alive():
            raise ModelTimeout(
                f"{self._url} accepted the request and then stopped answering at all ({silent:.0f} s). "
                "The process hangs or is stopped; restart the model server."
            )

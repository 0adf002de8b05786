"""Trying again: exponential backoff with jitter, only for what may pass by itself."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from msgspec import Struct

from domain.errors import ModelLoading, ModelProtocolError, ModelUnavailable

T = TypeVar("T")


class RetryPolicy(Struct, frozen=True):
    """``attempts`` in all for a server that is down or drops the connection; a loading one is waited for up to
    ``loading_wait`` seconds (a large model takes minutes from a slow disk). Pauses start at ``base`` seconds and
    double up to ``ceiling``."""

    attempts: int = 4
    loading_wait: float = 600.0
    base: float = 0.5
    ceiling: float = 8.0

    def pause(self, nth: int, draw: float) -> float:
        """Seconds before retry ``nth`` (from 0); ``draw`` in [0, 1) takes off up to a half, so that clients spread."""
        whole: float = min(self.ceiling, self.base * 2.0 ** min(nth, 30))
        return whole * (1.0 - draw / 2.0)


DEFAULT_RETRIES = RetryPolicy()


async def with_retries(
    operation: Callable[[], Awaitable[T]],
    policy: RetryPolicy,
    may_retry: Callable[[], bool] = lambda: True,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> T:
    """Runs ``operation`` until it succeeds or the policy is used up; then its last error is raised.

    ``may_retry`` turns false once something was shown to the person: an answer must not start twice before
    their eyes. Time-outs are not retried here, they have taken long enough already."""
    failures, waits, waited = 0, 0, 0.0
    while True:
        try:
            return await operation()
        except ModelLoading:
            if waited >= policy.loading_wait:
                raise
            pause = policy.pause(waits, random.random())
            waits, waited = waits + 1, waited + pause
        except (ModelUnavailable, ModelProtocolError):
            failures += 1
            if failures >= policy.attempts or not may_retry():
                raise
            pause = policy.pause(failures - 1, random.random())
        await sleep(pause)

"""Patience with a silent server, and trying again."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.llm.patience import Patience
from adapters.llm.retry import RetryPolicy, with_retries
from domain.errors import ModelError, ModelLoading, ModelProtocolError, ModelRejected, ModelTimeout, ModelUnavailable

pytestmark = pytest.mark.asyncio


class Server:
    """Answers after a while, and may be asked whether it is alive."""

    def __init__(self, alive: bool = True) -> None:
        self.answers_alive = alive
        self.asked = 0
        self.cancelled = False

    async def alive(self) -> bool:
        self.asked += 1
        return self.answers_alive

    async def answer(self, after: float) -> str:
        try:
            await asyncio.sleep(after)
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return "here"


def _patience(server: Server, idle: float = 0.02, prefill: float = 5.0, generating: bool = False) -> Patience:
    patience = Patience(idle, prefill, server.alive, "http://m")
    patience.generating = generating
    return patience


async def test_a_long_prefill_is_waited_for_while_the_server_lives() -> None:
    server = Server()
    assert await _patience(server).wait(server.answer(0.1)) == "here"
    assert server.asked >= 1


async def test_a_stopped_process_is_noticed_before_the_prefill_limit() -> None:
    server = Server(alive=False)
    with pytest.raises(ModelTimeout, match="stopped answering at all"):
        await _patience(server).wait(server.answer(60))
    assert server.cancelled


async def test_the_prefill_limit_holds_even_for_a_living_server() -> None:
    server = Server()
    with pytest.raises(ModelTimeout, match="did not begin"):
        await _patience(server, prefill=0.05).wait(server.answer(60))
    assert server.cancelled


async def test_silence_among_tokens_ends_at_the_idle_limit() -> None:
    server = Server()
    with pytest.raises(ModelTimeout, match="in the middle"):
        await _patience(server, generating=True).wait(server.answer(60))
    assert server.cancelled
    assert server.asked == 0


async def test_cancelling_the_wait_ends_the_step() -> None:
    server = Server()
    waiting = asyncio.create_task(_patience(server).wait(server.answer(60)))
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert server.cancelled


class Flaky:
    """Fails in the given ways, then succeeds; remembers the pauses between."""

    def __init__(self, *failures: ModelError) -> None:
        self.failures = list(failures)
        self.pauses: list[float] = []

    async def __call__(self) -> str:
        if self.failures:
            raise self.failures.pop(0)
        return "done"

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


async def test_what_passes_by_itself_is_retried_with_growing_pauses() -> None:
    flaky = Flaky(ModelUnavailable("a"), ModelProtocolError("b"), ModelUnavailable("c"))
    assert await with_retries(flaky, RetryPolicy(attempts=4), sleep=flaky.sleep) == "done"
    assert [0.25 <= flaky.pauses[0] <= 0.5, 0.5 <= flaky.pauses[1] <= 1, 1 <= flaky.pauses[2] <= 2] == [True] * 3


async def test_the_last_error_is_raised_when_attempts_are_used_up() -> None:
    flaky = Flaky(ModelUnavailable("first"), ModelUnavailable("second"), ModelUnavailable("third"))
    with pytest.raises(ModelUnavailable, match="second"):
        await with_retries(flaky, RetryPolicy(attempts=2), sleep=flaky.sleep)


@pytest.mark.parametrize("error", [ModelRejected("no"), ModelTimeout("slow")])
async def test_what_does_not_pass_is_not_retried(error: ModelError) -> None:
    flaky = Flaky(error)
    with pytest.raises(type(error)):
        await with_retries(flaky, RetryPolicy(), sleep=flaky.sleep)
    assert flaky.pauses == []


async def test_nothing_is_retried_after_something_was_shown() -> None:
    flaky = Flaky(ModelProtocolError("cut"))
    with pytest.raises(ModelProtocolError):
        await with_retries(flaky, RetryPolicy(), lambda: False, flaky.sleep)


async def test_loading_is_waited_for_longer_than_attempts_but_not_for_ever() -> None:
    flaky = Flaky(*[ModelLoading("loading")] * 20)
    assert await with_retries(flaky, RetryPolicy(attempts=2), sleep=flaky.sleep) == "done"
    endless = Flaky(*[ModelLoading("loading")] * 1000)
    with pytest.raises(ModelLoading):
        await with_retries(endless, RetryPolicy(loading_wait=30.0), sleep=endless.sleep)
    assert 30.0 <= sum(endless.pauses) <= 38.0


@given(st.integers(0, 10_000), st.floats(0, 1, exclude_max=True))
async def test_pauses_stay_within_bounds(nth: int, draw: float) -> None:
    assert 0.25 <= RetryPolicy().pause(nth, draw) <= 8.0

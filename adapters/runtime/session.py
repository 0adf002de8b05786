"""One task in the hands of a worker: its state, and the commands that are not yet in the log."""

import asyncio
import contextvars
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import structlog

from adapters.store.event_store import EventStore, Write
from adapters.store.tasks import Aggregates
from domain.errors import ConcurrencyConflict, Conflict, StorageError
from domain.events import Actor
from domain.ids import task_stream
from domain.messages import Message
from domain.task.commands import Command
from domain.task.context import Prefix
from domain.task.decide import decide
from domain.task.events import TaskEvent
from domain.task.evolve import evolve, fold
from domain.task.state import Task

_log = structlog.get_logger()
R = TypeVar("R")
_STORE_THREADS = ThreadPoolExecutor(24, thread_name_prefix="store")
"""For the database only: tools use the loop's own threads, and a slow search must not keep a cancel waiting."""
RETRY_CEILING = 3.0
REQUEST_SECONDS = 8.0


async def in_thread(call: Callable[..., R], *args: Any, **kwargs: Any) -> R:
    """Runs a blocking call of the store; a cancelled caller still waits for it, so that nothing is half known."""
    context = contextvars.copy_context()
    work = functools.partial(context.run, call, *args, **kwargs)
    future: asyncio.Future[R] = asyncio.get_running_loop().run_in_executor(_STORE_THREADS, work)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        await asyncio.wait([future])
        raise


async def in_request(call: Callable[..., R], *args: Any, **kwargs: Any) -> R:
    """As :func:`in_thread`, for somebody who waits for an answer: a database that is silent is a ``StorageError``."""
    try:
        async with asyncio.timeout(REQUEST_SECONDS):
            future = asyncio.ensure_future(in_thread(call, *args, **kwargs))
            future.add_done_callback(lambda f: f.cancelled() or f.exception())
            return await asyncio.shield(future)
    except TimeoutError:
        raise StorageError(f"the database did not answer within {REQUEST_SECONDS:.0f} s") from None


async def stubborn(call: Callable[..., R], *args: Any, **kwargs: Any) -> R:
    """As :func:`in_thread`, again and again while the database is away: for what is known only here and must not be lost."""
    pause = 0.1
    while True:
        try:
            return await in_thread(call, *args, **kwargs)
        except StorageError as error:
            _log.warning("waiting_for_database", error=str(error))
            await asyncio.sleep(pause)
            pause = min(pause * 2, RETRY_CEILING)


class TaskSession:
    """Applies commands to a task and appends their events. Outcomes of effects that may be repeated wait for the next
    flush, so that a step costs few appends; everything is in the log before the next effect starts."""

    def __init__(self, store: EventStore, aggregates: Aggregates, task_id: str) -> None:
        self._store = store
        self._aggregates = aggregates
        self.task_id = task_id
        self.state = Task(task_id=task_id)
        self._stored = self.state
        self._last_id = ""
        self.base: tuple[Prefix, list[Message]] | None = None
        """What stands before the task's own messages, once it is known."""
        self._waiting: list[Command] = []
        self._events: list[TaskEvent] = []

    async def load(self) -> None:
        loaded = await in_thread(self._aggregates.task, self.task_id)
        self.state = self._stored = loaded.state
        self._last_id = loaded.last_event_id
        self._forget()

    def apply(self, command: Command) -> None:
        """Decides and evolves in memory; the events follow with the next flush. Raises ``Conflict``."""
        decided = decide(self.state, command)
        for event in decided:
            self.state = evolve(self.state, event)
        self._waiting.append(command)
        self._events += decided

    async def commit(self, command: Command) -> bool:
        """Applies and flushes; False when the log has moved so that the command does not hold any more."""
        self.apply(command)
        return command in await self.flush()

    async def flush(self, actor: Actor = "runtime") -> list[Command]:
        """Appends what waits and returns the commands that hold. When somebody else appended first (a person
        cancelled, say), the commands are decided again in the new state."""
        while self._events:
            write = Write(task_stream(self.task_id), self._stored.version, self._events)
            envelopes = self._store.envelopes([write], actor, self.task_id, self._last_id)
            try:
                # With the same ids each time: if an append got through and its answer did not, it is recognised.
                stored = await stubborn(self._store.put, envelopes)
            except ConcurrencyConflict:
                await self._catch_up()
                self._decide_again()
                continue
            held = self._waiting
            self._stored = self.state
            self._last_id = stored[-1].id
            self._forget()
            return held
        held = self._waiting
        self._forget()
        return held

    def _decide_again(self) -> None:
        commands = self._waiting
        self._forget()
        self.state = self._stored
        for command in commands:
            try:
                self.apply(command)
            except Conflict as conflict:
                _log.info("command_overtaken", task_id=self.task_id, command=type(command).__name__, why=str(conflict))

    def _forget(self) -> None:
        self._waiting, self._events = [], []

    async def _catch_up(self) -> None:
        log = await stubborn(self._store.load, task_stream(self.task_id), self._stored.version)
        self._stored = fold(self.task_id, log, self._stored)
        if log:
            self._last_id = log[-1].id

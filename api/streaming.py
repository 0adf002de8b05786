"""Following one task: stored events first, then what comes, with the pieces of running answers in between.

A slow reader costs bounded memory: when its queue is full, what is in it is dropped, and the reader is served again from
the log and from the text so far."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec
from litestar.response import ServerSentEventMessage

from adapters.runtime.live import LiveDelta, LiveKind
from adapters.runtime.session import in_thread
from api.contract import chat_answer, event_view
from api.problems import problem_of
from api.runtime import Runtime
from domain.errors import DuckError, ShuttingDown
from domain.events import Envelope
from domain.ids import task_stream
from domain.task.events import ModelReplied
from domain.task.evolve import evolve
from domain.task.state import Task

HEARTBEAT_SECONDS = 10.0
QUEUE = 2_000
PAGE = 500


def _message(event: str, data: Any, position: int | None = None) -> ServerSentEventMessage:
    text = msgspec.json.encode(data).decode()
    return ServerSentEventMessage(data=text, event=event, id=None if position is None else str(position))


class _Queue:
    """Events and deltas for one reader, at most :data:`QUEUE`; ``lost`` when some had to be dropped."""

    def __init__(self) -> None:
        self._items: deque[Envelope | LiveDelta] = deque()
        self._filled = asyncio.Event()
        self.lost = False

    def put(self, item: Envelope | LiveDelta) -> None:
        if len(self._items) >= QUEUE:
            self._items.clear()
            self.lost = True
        self._items.append(item)
        self._filled.set()

    async def get(self, timeout: float) -> Envelope | LiveDelta | None:
        """The next item, or None after ``timeout`` seconds of nothing or when items were lost."""
        if not self._items and not self.lost:
            self._filled.clear()
            try:
                await asyncio.wait_for(self._filled.wait(), timeout)
            except TimeoutError:
                return None
        return None if self.lost or not self._items else self._items.popleft()

    def wake(self) -> None:
        self._filled.set()

    def restart(self) -> None:
        self._items.clear()
        self.lost = False


class TaskFollower:
    """The stream of one task from position ``after``. ``until_waits``: ``done`` comes when the task ends or waits, as for
    a request that sent a message; otherwise only when it ends."""

    def __init__(self, runtime: Runtime, task_id: str, after: int, until_waits: bool) -> None:
        self._r = runtime
        self._task_id = task_id
        self._after = after
        self._until_waits = until_waits
        self._queue = _Queue()
        self._state = Task(task_id=task_id)
        self._position = 0
        self._deltas_done: dict[tuple[str, str], int] = {}

    async def messages(self) -> AsyncIterator[ServerSentEventMessage]:
        """Server-sent events to the end of the turn; ends with ``done`` or ``error``."""
        stream = task_stream(self._task_id)
        stopping = asyncio.ensure_future(self._r.stopping.wait())
        stopping.add_done_callback(lambda _: self._queue.wake())
        try:
            with (
                self._r.tail.subscribe(stream, self._queue.put),
                self._r.live.subscribe(self._task_id, self._queue.put),
            ):
                async for message in self._follow(stream):
                    yield message
        except DuckError as error:
            yield _message("error", problem_of(error))
        finally:
            stopping.cancel()

    async def _follow(self, stream: str) -> AsyncIterator[ServerSentEventMessage]:
        while True:
            self._queue.restart()
            async for message in self._stored(stream):
                yield message
            if self._is_over():
                yield self._done()
                return
            for delta in self._r.live.snapshot(self._task_id):
                yield self._delta(delta)
            while not self._queue.lost:
                item = await self._queue.get(HEARTBEAT_SECONDS)
                if self._r.stopping.is_set():
                    raise ShuttingDown("DuckLM is stopping; the task is kept, connect again when it is started")
                if item is None:
                    if not self._queue.lost:
                        yield _message("heartbeat", {"time": datetime.now(UTC)})
                elif isinstance(item, LiveDelta):
                    if self._is_new(item):
                        yield self._delta(item)
                elif item.position > self._position:
                    if item.version > self._state.version + 1:
                        break  # the tail began after events that are not read yet
                    for missing in self._rest(item):
                        yield missing
                    yield self._event(item)
                    if self._is_over():
                        yield self._done()
                        return

    async def _stored(self, stream: str) -> AsyncIterator[ServerSentEventMessage]:
        while True:
            log = await in_thread(self._r.database.store.read, self._position, PAGE, (), stream)
            for envelope in log:
                message = self._event(envelope)
                if envelope.position > self._after:
                    yield message
            if len(log) < PAGE:
                return

    def _event(self, e: Envelope) -> ServerSentEventMessage:
        self._state = evolve(self._state, e.data)
        self._position = e.position
        return _message("event", event_view(e), e.position)

    def _delta(self, d: LiveDelta) -> ServerSentEventMessage:
        self._deltas_done[d.call_id, d.kind] = d.offset + len(d.text)
        body: dict[str, Any] = {"call_id": d.call_id, "role": d.role}
        if d.kind == "progress":
            body |= {"total": d.total, "cached": d.cached, "processed": d.processed}
        else:
            body |= {"offset": d.offset, "text": d.text}
        return _message(d.kind, body)

    def _rest(self, e: Envelope) -> Iterator[ServerSentEventMessage]:
        """What a completed reply has beyond the deltas that came: pieces may be late or lost between processes, and what a
        reader puts together from deltas should be the whole."""
        if not isinstance(e.data, ModelReplied):
            return
        kinds: tuple[tuple[LiveKind, str], ...] = (
            ("reasoning_delta", e.data.reasoning),
            ("content_delta", e.data.content),
        )
        for kind, text in kinds:
            sent = self._deltas_done.get((e.data.call_id, kind), 0)
            if sent < len(text):
                yield self._delta(LiveDelta(self._task_id, e.data.call_id, kind, e.data.role, sent, text[sent:]))

    def _is_new(self, d: LiveDelta) -> bool:
        """A delta that was queued before the snapshot was taken is part of the snapshot."""
        return d.kind == "progress" or d.offset == 0 or d.offset >= self._deltas_done.get((d.call_id, d.kind), 0)

    def _is_over(self) -> bool:
        if self._state.ended:
            return True
        return self._until_waits and (self._state.status == "paused" or self._state.status.startswith("waiting"))

    def _done(self) -> ServerSentEventMessage:
        return _message("done", chat_answer(self._state, self._position))


async def wait_for_turn(runtime: Runtime, task_id: str) -> Any:
    """The answer of ``POST /v1/chat``: when the task ends or waits."""
    queue: asyncio.Queue[Envelope] = asyncio.Queue()
    stream = task_stream(task_id)
    with runtime.tail.subscribe(stream, queue.put_nowait):
        state, position = Task(task_id=task_id), 0
        while True:
            for envelope in await in_thread(runtime.database.store.load, stream, state.version):
                state, position = evolve(state, envelope.data), envelope.position
            if state.ended or state.status == "paused" or state.status.startswith("waiting"):
                return chat_answer(state, position)
            await _first(queue.get(), runtime.stopping.wait())
            if runtime.stopping.is_set():
                raise ShuttingDown(f"DuckLM is stopping; task {task_id} is kept and goes on when it is started again")
            while not queue.empty():
                queue.get_nowait()


async def _first(*waits: Coroutine[Any, Any, Any]) -> None:
    """Waits until one of several things has happened."""
    tasks = [asyncio.ensure_future(w) for w in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()

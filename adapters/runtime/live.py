"""What is happening right now and is no event: pieces of running answers and tool output.

A late or reconnecting reader first gets the text so far, then pieces from its offset. Lives on the event loop."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from msgspec import Struct

LiveKind = Literal["reasoning_delta", "content_delta", "tool_output", "progress"]


class LiveDelta(Struct, frozen=True, omit_defaults=True):
    """A piece of text at a character ``offset`` of one call's stream, or prefill counts (tokens)."""

    task_id: str
    call_id: str
    kind: LiveKind
    role: str = ""
    offset: int = 0
    text: str = ""
    total: int = 0
    cached: int = 0
    processed: int = 0


class _Running:
    """The text so far of one call, by kind."""

    def __init__(self, task_id: str, role: str) -> None:
        self.task_id = task_id
        self.role = role
        self.parts: dict[LiveKind, list[str]] = defaultdict(list)
        self.lengths: dict[LiveKind, int] = defaultdict(int)
        self.progress: LiveDelta | None = None


Listener = Callable[[LiveDelta], None]
KEPT = 200_000
"""Characters of one call's stream that a late reader gets; tool output beyond that is in the event."""


class LiveFeed:
    """Fans out deltas by task and remembers the running calls."""

    def __init__(self) -> None:
        self._calls: dict[str, _Running] = {}
        self._on_delta: Callable[[LiveDelta], None] = lambda _delta: None
        self._on_end: Callable[[str], None] = lambda _call_id: None
        self._listeners: dict[str, set[Listener]] = defaultdict(set)

    def on_local(self, on_delta: Callable[[LiveDelta], None], on_end: Callable[[str], None]) -> None:
        """Hears of everything that this process itself produces (not of what it takes in)."""
        self._on_delta, self._on_end = on_delta, on_end

    def begin(self, task_id: str, call_id: str, role: str) -> None:
        """A call starts, or starts again: readers forget what they have of it."""
        self._calls[call_id] = _Running(task_id, role)

    def text(self, call_id: str, kind: LiveKind, text: str) -> None:
        call = self._calls.get(call_id)
        if call is None or not text:
            return
        delta = LiveDelta(call.task_id, call_id, kind, call.role, call.lengths[kind], text)
        self._keep(call, delta)
        if delta.offset < KEPT:
            self._on_delta(delta)

    def progress(self, call_id: str, total: int, cached: int, processed: int) -> None:
        call = self._calls.get(call_id)
        if call is not None:
            delta = LiveDelta(
                call.task_id, call_id, "progress", call.role, total=total, cached=cached, processed=processed
            )
            self._keep(call, delta)
            self._on_delta(delta)

    def end(self, call_id: str) -> None:
        if self._calls.pop(call_id, None) is not None:
            self._on_end(call_id)

    def take_in(self, delta: LiveDelta) -> None:
        """A delta of another process. One that does not continue what is here is passed on all the same: its offset
        tells readers that something is missing."""
        call = self._calls.get(delta.call_id)
        if call is None:
            call = self._calls[delta.call_id] = _Running(delta.task_id, delta.role)
        self._keep(call, delta)

    def forget(self, call_id: str) -> None:
        """A call of another process has ended."""
        self._calls.pop(call_id, None)

    def _keep(self, call: _Running, delta: LiveDelta) -> None:
        if delta.kind == "progress":
            call.progress = delta
        else:
            if delta.offset == 0:
                call.parts[delta.kind].clear()
            call.lengths[delta.kind] = delta.offset + len(delta.text)
            if delta.offset < KEPT:
                call.parts[delta.kind].append(delta.text)
        self._send(delta)

    def snapshot(self, task_id: str) -> list[LiveDelta]:
        """The text so far of the task's running calls, each stream as one delta at offset 0."""
        out = []
        for call_id, call in self._calls.items():
            if call.task_id != task_id:
                continue
            if call.progress and not call.parts:
                out.append(call.progress)
            for kind, parts in call.parts.items():
                joined = "".join(parts)
                call.parts[kind] = [joined]
                out.append(LiveDelta(task_id, call_id, kind, call.role, 0, joined))
        return out

    @contextmanager
    def subscribe(self, task_id: str, listener: Listener) -> Iterator[None]:
        self._listeners[task_id].add(listener)
        try:
            yield
        finally:
            self._listeners[task_id].discard(listener)
            if not self._listeners[task_id]:
                del self._listeners[task_id]

    def _send(self, delta: LiveDelta) -> None:
        for listener in tuple(self._listeners.get(delta.task_id, ())):
            listener(delta)

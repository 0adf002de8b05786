"""Server-sent events, from bytes cut anywhere to the data of each event.

Lines are split at LF only (and a CR before it dropped): ``str.splitlines`` would also split at U+2028, which
models do write inside a JSON string.
"""

from domain.errors import ModelProtocolError

MAX_EVENT_BYTES = 8 * 1024 * 1024


class SseDecoder:
    def __init__(self) -> None:
        self._rest = b""
        self._data: list[str] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[str]:
        """Data of the events that this chunk completed. Raises ``ModelProtocolError`` for one that never ends."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        events = [event for line in lines if (event := self._line(line)) is not None]
        if len(self._rest) + self._size > MAX_EVENT_BYTES:
            raise ModelProtocolError(f"the model server sent one event of more than {MAX_EVENT_BYTES} bytes")
        return events

    def finish(self) -> list[str]:
        """Data of a last event that no blank line closed; some servers end like that."""
        rest, self._rest = self._rest, b""
        first = self._line(rest) if rest else None
        last = self._line(b"")
        return [event for event in (first, last) if event is not None]

    def _line(self, raw: bytes) -> str | None:
        line = raw.removesuffix(b"\r")
        if not line:
            data, self._data, self._size = self._data, [], 0
            return "\n".join(data) if data else None
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" ").decode("utf-8", "replace"))
            self._size += len(line)
        return None

"""Server-sent events as a client reads them: name, position and data, from bytes cut anywhere.

Lines end at LF only: ``str.splitlines`` (and httpx's line reader) would also split at U+2028, which models do write."""

from typing import Any

import msgspec
from msgspec import Struct


class ServerEvent(Struct, frozen=True):
    """``position`` is that of a domain event, 0 for everything else."""

    name: str
    data: Any
    position: int = 0


class SseReader:
    """Feed it chunks; it gives the events that they complete. Heartbeats come through: they say that all is well."""

    def __init__(self) -> None:
        self._rest = b""
        self._name = "message"
        self._id = ""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        return [event for line in lines if (event := self._line(line.removesuffix(b"\r"))) is not None]

    def _line(self, line: bytes) -> ServerEvent | None:
        if not line:
            return self._complete()
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match field:
            case b"event":
                self._name = value.decode("utf-8", "replace")
            case b"id":
                self._id = value.decode("utf-8", "replace")
            case b"data":
                self._data.append(value)
        return None

    def _complete(self) -> ServerEvent | None:
        name, position, data = self._name, self._id, b"\n".join(self._data)
        self._name, self._id, self._data = "message", "", []
        if not data:
            return None
        try:
            decoded = msgspec.json.decode(data)
        except msgspec.DecodeError:
            decoded = data.decode("utf-8", "replace")
        return ServerEvent(name, decoded, int(position) if position.isdecimal() else 0)

"""The whole output of a tool, kept aside while only its head and tail go on."""

LIMIT = 16 * 1024 * 1024
"""Bytes kept; beyond that the end is missing, and the event's size says so."""


class Spool:
    """Collects text up to :data:`LIMIT` bytes."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def write(self, text: str) -> None:
        if self._size < LIMIT:
            raw = text.encode("utf-8", "replace")[: LIMIT - self._size]
            self._parts.append(raw)
            self._size += len(raw)

    def body(self) -> bytes:
        return b"".join(self._parts)

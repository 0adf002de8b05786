"""Keeping the beginning and the end of an output of any length in bounded memory."""

import codecs
from collections.abc import Callable

from domain.text import storable


class Capture:
    """Takes raw bytes, hands text on as it comes, and keeps at most ``limit`` bytes of it (in UTF-8).

    Bytes that are no UTF-8 become �, NUL becomes ␀; characters cut by a border between two pieces stay whole.
    """

    def __init__(self, limit: int, on_output: Callable[[str], None]) -> None:
        self.size = 0
        """Bytes that came in."""
        self._on_output = on_output
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._head_room = limit // 2
        self._tail_room = limit - limit // 2 - 64
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0

    def feed(self, raw: bytes) -> None:
        self.size += len(raw)
        self._take(self._decoder.decode(raw))

    def close(self) -> None:
        """Hands on what was held back as half a character."""
        self._take(self._decoder.decode(b"", final=True))

    @property
    def truncated(self) -> bool:
        return self._dropped > 0

    def text(self) -> str:
        """Head and tail with a line about what is missing between them, or everything."""
        self._shorten(self._tail_room)
        head, tail = bytes(self._head), bytes(self._tail)
        if not self._dropped:
            return (head + tail).decode("utf-8", "replace")
        gap = f"\n[… {self._dropped} bytes are left out here …]\n"
        return head.decode("utf-8", "ignore") + gap + tail.decode("utf-8", "ignore")

    def _take(self, text: str) -> None:
        if not text:
            return
        text = storable(text)
        self._on_output(text)
        encoded = text.encode("utf-8")
        room = self._head_room - len(self._head)
        self._head += encoded[:room]
        self._tail += encoded[room:]
        if len(self._tail) > 2 * self._tail_room:  # not at every piece, or it would take quadratic time
            self._shorten(self._tail_room)

    def _shorten(self, room: int) -> None:
        if (extra := len(self._tail) - room) > 0:
            del self._tail[:extra]
            self._dropped += extra

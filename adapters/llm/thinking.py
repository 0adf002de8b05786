"""Tells reasoning from answer where a server leaves ``<think>…</think>`` in the content.

Only a block at the very start counts: a coder may well write about the tag further down.
"""

import re
from typing import Literal

Part = tuple[Literal["reasoning", "content"], str]

_OPEN, _CLOSE = "<think>", "</think>"
_CLOSE_LINE = re.compile(r"^[ \t]*</think>[ \t]*$", re.MULTILINE)


def split_unopened(content: str) -> tuple[str, str]:
    """``(reasoning, answer)`` where the template itself had written ``<think>``, so that only the end tag came.

    The tag must stand alone on its line; otherwise the content is returned as it is, with no reasoning."""
    found = _CLOSE_LINE.search(content)
    if found is None or _OPEN in content[: found.start()]:
        return "", content
    return content[: found.start()].rstrip(), content[found.end() :].lstrip()


class ThinkSplitter:
    """Splits content that arrives in pieces cut anywhere, also within a tag."""

    def __init__(self) -> None:
        self._state: Literal["start", "thinking", "gap", "content"] = "start"
        self._held = ""

    def feed(self, piece: str) -> list[Part]:
        """The parts that are certain by now, never empty ones."""
        self._held += piece
        parts: list[Part] = []
        if self._state == "start":
            self._start()
        if self._state == "thinking":
            parts += self._think()
        if self._state == "gap":
            self._held = self._held.lstrip()
            if self._held:
                self._state = "content"
        if self._state == "content" and self._held:
            parts.append(("content", self._take(len(self._held))))
        return parts

    def finish(self) -> list[Part]:
        """What was held back at the end of the stream; a block that never closed is reasoning."""
        held = self._take(len(self._held))
        if not held or self._state == "gap":
            return []
        return [("reasoning" if self._state == "thinking" else "content", held)]

    def _start(self) -> None:
        begun = self._held.lstrip()
        if begun.startswith(_OPEN):
            self._held = begun[len(_OPEN) :]
            self._state = "thinking"
        elif begun and not _OPEN.startswith(begun):
            self._state = "content"

    def _think(self) -> list[Part]:
        end = self._held.find(_CLOSE)
        if end >= 0:
            reasoning = self._take(end)
            self._held = self._held[len(_CLOSE) :]
            self._state = "gap"
        else:
            reasoning = self._take(len(self._held) - _begun(self._held, _CLOSE))
        return [("reasoning", reasoning)] if reasoning else []

    def _take(self, count: int) -> str:
        taken, self._held = self._held[:count], self._held[count:]
        return taken


def _begun(text: str, tag: str) -> int:
    """How many characters at the end of ``text`` may be the start of ``tag``."""
    return next((n for n in range(min(len(tag) - 1, len(text)), 0, -1) if text.endswith(tag[:n])), 0)

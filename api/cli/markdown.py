"""Colours for Markdown that is still being written. Nothing is left out, moved or drawn again: what a model wrote stands
on the terminal as it came, only coloured, so that a long answer never flickers and can be copied as it is."""

import re
from collections.abc import Iterator

_UNDECIDED = re.compile(r" {0,3}(`{0,2}|#{0,6})")
_HEADING = re.compile(r" {0,3}#{1,6}\s")

Segment = tuple[str, str]
"""Text and its style, "" for plain."""


class MarkdownPainter:
    """Feed it pieces cut anywhere; it gives segments. It holds back a few characters until it knows what they are."""

    def __init__(self) -> None:
        self._held = ""
        self._line_style: str | None = None
        self._at_start = True
        self._fence = self._bold = self._code = False

    def feed(self, text: str) -> list[Segment]:
        return list(_merged(s for char in text for s in self._char(char)))

    def finish(self) -> list[Segment]:
        """What was held back; the text is over."""
        held, self._held = self._held, ""
        return [(held, self._style())] if held else []

    def _char(self, char: str) -> Iterator[Segment]:
        if self._at_start:
            self._held += char
            if char != "\n" and _UNDECIDED.fullmatch(self._held):
                return
            held, self._held, self._at_start = self._held, "", False
            self._line_style = self._kind_of_line(held)
            for c in held:
                yield from self._inline(c)
        else:
            yield from self._inline(char)

    def _kind_of_line(self, start: str) -> str | None:
        """The style of a whole line; None where it is looked at character by character."""
        if start.lstrip(" ").startswith("```"):
            self._fence = not self._fence
            return "dim"
        if self._fence:
            return "cyan"
        return "bold" if _HEADING.match(start) else None

    def _inline(self, char: str) -> Iterator[Segment]:
        if char == "\n":
            yield self._held + "\n", self._style()
            self._held, self._at_start, self._line_style = "", True, None
            self._bold = self._code = False
        elif self._line_style is not None:
            yield char, self._line_style
        elif char == "*" and not self._code and self._held != "**":
            self._held += char
        else:
            yield from self._stars(char)
            if char == "`":
                yield char, "dim"
                self._code = not self._code
            else:
                yield char, self._style()

    def _stars(self, following: str) -> Iterator[Segment]:
        """Stars that were held back: two of them turn bold on before a word, and off."""
        held, self._held = self._held, ""
        if held == "**" and (self._bold or not following.isspace()):
            yield held, "dim"
            self._bold = not self._bold
        elif held:
            yield held, self._style()

    def _style(self) -> str:
        if self._line_style is not None:
            return self._line_style
        return "cyan" if self._code else "bold" if self._bold else ""


def _merged(segments: Iterator[Segment]) -> Iterator[Segment]:
    text, style = "", ""
    for more, kind in segments:
        if kind != style and text:
            yield text, style
            text = ""
        text, style = text + more, kind
    if text:
        yield text, style

"""Text on its way out of the tools: into events, onto a screen, to the model."""

import re
import unicodedata

_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movement
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"  # OSC, DCS …: titles, links
    r"|\x1b[ -/]*[0-~]"  # two and three byte escapes
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_BIDI = re.compile(r"[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_SURROGATES = re.compile(r"[\ud800-\udfff]")
_OVERWRITTEN = re.compile(r"[^\n]*\r(?=[^\n\r])")


def storable(text: str) -> str:
    """``text`` as every store and JSON document takes it: NUL as ␀, halves of surrogate pairs as �."""
    return _SURROGATES.sub("\ufffd", text.replace("\0", "␀"))


def shown(text: str) -> str:
    """A name or command on one line, with everything invisible or misleading written as an escape."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def for_model(text: str) -> str:
    """Terminal output as a model should read it.

    Escape sequences and control characters go, of a progress line only its last state stays, and characters that
    reverse the reading order are written out (``\\u202e``), so that they hide nothing. The console gets the original.
    """
    text = _ESCAPES.sub("", text)
    text = _OVERWRITTEN.sub("", text)
    text = _CONTROLS.sub("", text.replace("\0", "␀"))
    return _BIDI.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def clipped(text: str, limit: int) -> str:
    """The beginning of ``text``, at most ``limit`` bytes in UTF-8, never half a character."""
    raw = text.encode("utf-8", "replace")
    return text if len(raw) <= limit else raw[:limit].decode("utf-8", "ignore")


def folded(name: str) -> str:
    """``name`` as file systems and careless rules may see it: without case, width, invisible characters, and the
    dots and spaces at the end that some file systems drop."""
    wide = unicodedata.normalize("NFKC", name)
    visible = "".join(c for c in wide if unicodedata.category(c) != "Cf")
    return visible.casefold().rstrip(" .") or visible

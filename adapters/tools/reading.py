"""``file_read``: a window of lines of a text file."""

import codecs
import hashlib
import io
import os
from collections.abc import Iterator
from typing import BinaryIO

from adapters.tools.workspace import Workspace
from domain.text import clipped, shown
from domain.tools import FileRead, ToolResult

MAX_OUTPUT = 64 * 1024
"""Bytes of one result, in UTF-8, with the line that says what is shown."""

MAX_LINE = 4000
"""Bytes shown of one line."""

MAX_SCAN = 256 * 1024 * 1024
"""Bytes read to count lines; a longer file is counted so far only."""

MAX_WIDE = 16 * 1024 * 1024
"""Bytes of a UTF-16 file, which is translated as a whole."""

_CHUNK = 1024 * 1024
_DECODER = codecs.getincrementaldecoder("utf-8")
_HEADER_ROOM = 400

_MAGIC = (
    (b"\x89PNG", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF8", "GIF image"),
    (b"RIFF", "RIFF media (WebP, WAV, AVI)"),
    (b"%PDF", "PDF document"),
    (b"PK\x03\x04", "ZIP archive (also docx, xlsx, jar, wheel)"),
    (b"\x1f\x8b", "gzip data"),
    (b"\xfd7zXZ", "xz data"),
    (b"\x28\xb5\x2f\xfd", "Zstandard data"),
    (b"\x7fELF", "ELF program"),
    (b"SQLite format 3", "SQLite database"),
    (b"GGUF", "GGUF model"),
)


def file_read(workspace: Workspace, args: FileRead) -> ToolResult:
    """Lines ``offset`` to ``offset + limit`` after one line in brackets that says which they are and where to go on.

    ``data``: ``lines`` (``None`` when not all were counted), ``next_offset`` (``None`` at the end), ``sha256`` of the
    whole file when it was read to its end, ``binary``.
    """
    with workspace.file(args.path) as (handle, status), os.fdopen(os.dup(handle), "rb") as file:
        head = file.read(8192)
        file.seek(0)
        if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            text = file.read(MAX_WIDE).decode("utf-16", "replace")
            return _Window(args, status.st_size, translated=True).read(io.BytesIO(text.encode("utf-8", "replace")))
        if kind := _binary_kind(head):
            note = f"[{shown(args.path)} is binary: {kind}, {status.st_size} bytes; it is not shown]"
            return ToolResult(True, note, size=status.st_size, data={"binary": True})
        return _Window(args, status.st_size).read(file)


def _binary_kind(head: bytes) -> str:
    """What kind of binary file begins like this; empty for text."""
    for magic, name in _MAGIC:
        if head.startswith(magic):
            return name
    return "unknown kind" if b"\0" in head else ""


class _Window:
    """Collects the asked lines of a stream while counting the others."""

    def __init__(self, args: FileRead, size: int, *, translated: bool = False) -> None:
        self._first, self._end = args.offset, args.offset + args.limit
        self._size = size
        self._notes = ["UTF-16"] if translated else []
        self._hash = None if translated else hashlib.sha256()
        self._scanned = 0
        self._shown: list[str] = []
        self._room = MAX_OUTPUT - _HEADER_ROOM
        self._cut = 0
        self._invalid = self._crlf = False

    def read(self, file: BinaryIO) -> ToolResult:
        """The result; ``file`` is at its beginning."""
        number = 0
        for begin, ended in self._lines(file):
            if self._first <= number < self._end and not self._show(begin, ended):
                self._end = number
            number += 1
            if number >= self._end:
                break
        number += self._count_rest(file)
        return self._result(number, complete=self._scanned < MAX_SCAN)

    def _lines(self, file: BinaryIO) -> Iterator[tuple[bytes, bool]]:
        """The beginning of each line and whether that is all of it; the rest of a long line is passed over."""
        while self._scanned < MAX_SCAN and (begin := self._take(file)):
            piece, whole = begin, True
            while not piece.endswith(b"\n") and self._scanned < MAX_SCAN and (piece := self._take(file)):
                whole = False
            yield begin, whole

    def _take(self, file: BinaryIO) -> bytes:
        return self._seen(file.readline(MAX_LINE + 1))

    def _seen(self, raw: bytes) -> bytes:
        self._scanned += len(raw)
        if self._hash is not None:
            self._hash.update(raw)
        return raw

    def _show(self, begin: bytes, whole: bool) -> bool:
        """Adds a line; ``False`` when there is no room for it."""
        # Of a line that goes on, the last character may be half there; that is no fault of the file.
        text = _DECODER("replace").decode(begin, final=whole).rstrip("\r\n").removeprefix("\ufeff")
        self._invalid = self._invalid or ("�" in text and "�".encode() not in begin)
        self._crlf = self._crlf or begin.endswith(b"\r\n")
        if not whole:
            text = f"{clipped(text, MAX_LINE)} [… this line is longer]"
        # Replacement characters are longer than what they replace, so the text is measured and not the file.
        length = len(text.encode("utf-8", "replace")) + 1
        if length > self._room:
            return False
        self._cut += not whole
        self._room -= length
        self._shown.append(text)
        return True

    def _count_rest(self, file: BinaryIO) -> int:
        lines, last = 0, b"\n"
        while self._scanned < MAX_SCAN and (chunk := self._seen(file.read(_CHUNK))):
            lines += chunk.count(b"\n")
            last = chunk[-1:]
        return lines + (last != b"\n")

    def _result(self, total: int, *, complete: bool) -> ToolResult:
        after = self._first + len(self._shown)
        following = after if after < total or not complete else None
        data = {
            "binary": False,
            "lines": total if complete else None,
            "next_offset": following,
            "sha256": self._hash.hexdigest() if complete and self._hash is not None else None,
        }
        if total <= self._first and (total or self._first):
            note = f"[the file has {total} lines; offset {self._first} is past its end]"
            return ToolResult(False, note, size=self._size, data=data)
        output = "\n".join([f"[{self._header(total, after, following, complete)}]", *self._shown])
        return ToolResult(True, output, size=self._size, truncated=following is not None or self._cut > 0, data=data)

    def _header(self, total: int, after: int, following: int | None, complete: bool) -> str:
        if not total:
            return "empty file"
        says = f"lines {self._first + 1}–{after} of {'' if complete else 'more than '}{total}"
        if following is not None:
            self._notes.insert(0, f"next offset {following}")
        if self._cut:
            self._notes.append(f"{self._cut} lines were too long and are cut")
        if self._crlf:
            self._notes.append("lines end with CRLF")
        if self._invalid:
            self._notes.append("not valid UTF-8; what could not be read is shown as � (perhaps cp1251 or koi8-r)")
        return "; ".join([says, *self._notes])

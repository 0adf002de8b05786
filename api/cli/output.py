"""How commands speak: text for people, JSON for programs, errors with an exit code by class."""

import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from domain.errors import DuckError

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)

STATUS_STYLES = {
    "completed": "green", "running": "cyan", "created": "cyan", "failed": "red", "cancelled": "dim",
    "paused": "yellow", "waiting_for_approval": "yellow", "waiting_for_password": "yellow",
    "ok": "green", "warn": "yellow", "fail": "bold red", "mismatch": "bold red", "unknown": "yellow",
}  # fmt: skip
_VISIBLE = {code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\n\t"}
_VISIBLE |= {code: f"<U+{code:04X}>" for code in (*range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))}
_VISIBLE |= {code: f"<U+{code:04X}>" for code in range(0xD800, 0xE000)}


def safe(text: str) -> str:
    """Text of models and tools for a terminal: control and direction characters are shown, not obeyed."""
    return text.replace("\r\n", "\n").translate(_VISIBLE)


def one_line(text: str, width: int = 0) -> str:
    """The text in one line, cut to ``width`` (0: as it is)."""
    line = " ".join(safe(text).split())
    return line if not width or len(line) <= width else line[: width - 1] + "…"


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")


def print_json_line(value: Any) -> None:
    """One line of JSON Lines, out at once."""
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
    sys.stdout.flush()


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], nothing: str) -> None:
    """A table that fits the terminal; ``nothing`` is said when there are no rows. A column ``>name`` holds figures, the
    last one that begins with ``~`` takes the room that is left."""
    table = Table(box=None, pad_edge=False, header_style="dim", expand=out.is_terminal)
    for name in columns:
        rest = name.startswith("~")
        table.add_column(
            name.lstrip(">~"),
            justify="right" if name.startswith(">") else "left",
            no_wrap=not rest or out.is_terminal,
            overflow="ellipsis" if rest else "fold",
            ratio=1 if rest else None,
        )
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(safe(str(cell))) for cell in row))
    if not table.row_count:
        out.print(nothing, style="dim")
    elif out.is_terminal:
        out.print(table, soft_wrap=False)
    else:
        # Nothing is cut for a file or a pipe.
        Console(file=sys.stdout, highlight=False, width=10_000).print(table)


def status_text(status: str) -> Text:
    return Text(status, STATUS_STYLES.get(status, ""))


def ago(time: datetime | str, now: datetime | None = None) -> str:
    """How long something is past, roughly."""
    then = datetime.fromisoformat(time) if isinstance(time, str) else time
    seconds = int(((now or datetime.now(UTC)) - then).total_seconds())
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return "just now" if seconds < 10 else f"{seconds} s ago"


def duration(ms: float) -> str:
    """A time in milliseconds, as people say it."""
    if ms < 1000:
        return f"{ms:.0f} ms"
    seconds = ms / 1000
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds // 60)} min {int(seconds % 60)} s"


def counted(number: int, word: str) -> str:
    """``1 step``, ``2 steps``."""
    return f"{number:,} {word}" + ("" if number == 1 else "s")


def share(part: float | None) -> str:
    return "–" if part is None else f"{part:.0%}"


def fail(error: DuckError, as_json: bool = False) -> int:
    """Tells the error and returns the exit code of its class."""
    from api.problems import kind_of, problem_of

    kind = kind_of(error)
    if as_json:
        sys.stderr.write(msgspec.json.encode(problem_of(error)).decode() + "\n")
    else:
        err.print(f"[bold red]{kind.title}:[/] ", end="")
        err.print(safe(str(error)), markup=False)
    return kind.exit_code

"""What a person sees of a turn: the answer on standard output, everything about how it comes about on standard error."""

import sys
import time
from typing import Any

import msgspec
from rich.console import Console

from api.cli.markdown import MarkdownPainter, Segment
from api.cli.output import duration, err, one_line, out, safe

OUTPUT_LINES = 40
"""Lines of one tool call that are shown; all of it is in the log."""
_SPIN = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class Screen:
    """Shows nothing: for ``--json``."""

    def status(self, text: str) -> None:
        """What goes on now, in words, until something else is shown."""

    def tick(self) -> None:
        """Called several times a second."""

    def note(self, text: str, style: str = "dim") -> None:
        """A line about what happened."""

    def reasoning(self, role: str, text: str) -> None: ...

    def answer(self, text: str) -> None: ...

    def answer_ends(self) -> None: ...

    def tool(self, tool: str, arguments: str) -> None:
        """A tool call begins."""

    def tool_output(self, text: str) -> None: ...

    def question(self, tool: str, arguments: dict[str, Any], risk: str, reason: str, keys: bool) -> None:
        """An approval is asked for; ``keys``: and can be given here."""


class Terminal(Screen):
    """Lines and streams. Where standard error is no terminal, reasoning and the moving status line are left out."""

    def __init__(self) -> None:
        self._watched = err.is_terminal
        self._status, self._since, self._drawn = "", time.monotonic(), False
        self._mid_line = False
        self._painter = MarkdownPainter()
        self._answering = False
        self._output_lines = 0
        self._output_at_start = True

    def status(self, text: str) -> None:
        if text != self._status:
            self._status, self._since = text, time.monotonic()

    def tick(self) -> None:
        if not self._watched or self._mid_line or not self._status:
            return
        seconds = time.monotonic() - self._since
        spin = _SPIN[int(time.monotonic() * 10) % len(_SPIN)]
        line = f"{spin} {self._status}" + (f" · {seconds:.0f} s" if seconds >= 2 else "")
        self._wipe()
        err.out(one_line(line, max(err.width - 1, 10)), style="dim", end="", highlight=False)
        self._drawn = True

    def note(self, text: str, style: str = "dim") -> None:
        self._new_line()
        err.out(safe(text), style=style, highlight=False)

    def reasoning(self, role: str, text: str) -> None:
        if self._watched:
            self._write(err, safe(text), "dim italic")

    def answer(self, text: str) -> None:
        if not self._answering:
            self._new_line()
            if self._watched and out.is_terminal:
                err.out("")
            self._answering = True
        if out.is_terminal:
            self._paint(self._painter.feed(safe(text)))
        else:
            sys.stdout.write(text)
            sys.stdout.flush()

    def answer_ends(self) -> None:
        if not self._answering:
            return
        if out.is_terminal:
            self._paint(self._painter.finish())
            self._new_line()
            err.out("")
        else:
            sys.stdout.write("\n")
            sys.stdout.flush()
        self._painter, self._answering = MarkdownPainter(), False

    def tool(self, tool: str, arguments: str) -> None:
        self._new_line()
        self._output_lines, self._output_at_start = 0, True
        err.out(f"▸ {tool} ", style="bold cyan", end="", highlight=False)
        err.out(one_line(arguments, 400), highlight=False)

    def tool_output(self, text: str) -> None:
        for line in safe(text).splitlines(keepends=True):
            if self._output_at_start:
                self._output_lines += 1
                if self._output_lines == OUTPUT_LINES + 1:
                    self._write(err, "  │ … it goes on; all of it is in the log\n", "dim")
            if self._output_lines <= OUTPUT_LINES:
                self._write(err, ("  │ " if self._output_at_start else "") + line, "dim")
            self._output_at_start = line.endswith("\n")

    def question(self, tool: str, arguments: dict[str, Any], risk: str, reason: str, keys: bool) -> None:
        self._new_line()
        self._status = ""
        style = {"high": "bold red", "medium": "yellow"}.get(risk, "green")
        err.out(f"May it run {tool}? ", style="bold yellow", end="", highlight=False)
        err.out(f"risk {risk}", style=style, highlight=False)
        err.out(_exact(tool, arguments), highlight=False)
        if reason:
            err.out(f"  {safe(reason)}", style="dim", highlight=False)
        if keys:
            err.print("  [bold]y[/] once · [bold]a[/] always (exactly this, in this workspace) · [bold]n[/] no")

    def _paint(self, segments: list[Segment]) -> None:
        for text, style in segments:
            self._write(out, text, style)

    def _write(self, console: Console, text: str, style: str) -> None:
        if text:
            self._wipe()
            console.out(text, style=style or None, end="", highlight=False)
            self._mid_line = not text.endswith("\n")

    def _new_line(self) -> None:
        self._wipe()
        if self._mid_line:
            err.out("")
            self._mid_line = False

    def _wipe(self) -> None:
        """Takes the status line away."""
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._drawn = False


def _exact(tool: str, arguments: dict[str, Any]) -> str:
    """The action to its last character; only characters that would not show are written out."""
    others = {k: v for k, v in arguments.items() if k != "command"}
    if tool == "shell_exec" and "command" in arguments:
        shown = "\n    ".join(safe(str(arguments["command"])).split("\n"))
        more = "".join(f"\n  {name}: {value}" for name, value in others.items() if value not in (0, 120))
        return f"  $ {shown}{more}"
    return "  " + safe(msgspec.json.format(msgspec.json.encode(arguments), indent=2).decode()).replace("\n", "\n  ")


def result_line(ok: bool, exit_code: int | None, ms: float) -> tuple[str, str]:
    """How a call ended, and its style."""
    mark = "✓" if ok else "✗"
    code = "" if exit_code is None else f" exit {exit_code}"
    return f"  {mark}{code} · {duration(ms)}", "green" if ok else "red"

"""One event, one line."""

import sys

from rich.text import Text

from api.cli.output import one_line, out, print_json_line
from api.cli.summaries import short_type, summary
from api.contract import event_view
from domain.events import Envelope, Unreadable

_STYLES = {"person": "green", "model": "magenta", "tool": "cyan", "runtime": ""}


class EventPrinter:
    """Prints events and remembers the position of the last one."""

    def __init__(self, as_json: bool, with_stream: bool) -> None:
        self._as_json = as_json
        self._with_stream = with_stream
        self.position = 0

    def __call__(self, envelope: Envelope) -> None:
        self.position = envelope.position
        if self._as_json:
            print_json_line(event_view(envelope))
            return
        out.print(event_line(envelope, self._with_stream, out.width if out.is_terminal else 0))
        sys.stdout.flush()


def event_line(envelope: Envelope, with_stream: bool, width: int = 0) -> Text:
    """Position, time, stream (its last characters), version, type and what happened, cut to ``width``."""
    line = Text()
    line.append(f"{envelope.position:>6} ", "dim")
    line.append(f"{envelope.time.astimezone():%H:%M:%S} ", "dim")
    if with_stream:
        kind, _, key = envelope.stream.partition("-")
        line.append(f"{kind[:4]}…{key[-8:]} " if key else f"{kind} ".ljust(14), "dim")
    line.append(f"v{envelope.version} ".ljust(5), "dim")
    style = "bold red" if isinstance(envelope.data, Unreadable) else _STYLES.get(envelope.actor, "")
    line.append(f"{short_type(envelope):<28} ", style)
    line.append(one_line(summary(envelope.data), max(width - len(line), 10) if width else 500))
    return line

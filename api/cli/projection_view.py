"""Rebuilding and verifying, as people see it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from api.cli.output import err, one_line, out
from projections.rebuild import Difference
from projections.rebuild import Progress as Report


class _Speed(ProgressColumn):
    """Events a second."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f} events/s", "cyan")


@contextmanager
def progress_bar(text: str, hidden: bool) -> Iterator[Report]:
    """A bar on standard error, gone when it is done; nothing where nobody watches."""
    columns = (
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,.0f} of {task.total:,.0f}"),
        _Speed(), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=err, transient=True, disable=hidden or not err.is_terminal) as bar:
        job = bar.add_task(text, total=1)

        def report(position: int, head: int) -> None:
            bar.update(job, completed=position, total=max(head, 1))

        yield report


def print_differences(found: Mapping[str, Sequence[Difference]]) -> None:
    """A line for each projection, and the rows that differ."""
    for name, rows in found.items():
        if not rows:
            out.print(f"[green]ok[/]   {name}")
            continue
        out.print(f"[bold red]FAIL[/] {name}: {len(rows)} rows differ (at most 20 a table and side are listed)")
        for row in rows:
            values = ", ".join(f"{k}={v}" for k, v in row.row.items() if v is not None)
            out.print(Text(f"  only {row.side:<8} {row.table}: {one_line(values, 600)}"))
        out.print(f"     `ducklm projections rebuild {name}` mends it", style="dim")

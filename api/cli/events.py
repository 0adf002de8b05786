"""``ducklm events``: the log itself."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from api.cli.options import COMMON, Common, Flag

if TYPE_CHECKING:
    from domain.events import Envelope

events = App(name="events", help="The log: every step of every task, as it was written.")
DEFAULT_COUNT = 20


@events.command
def tail(
    *,
    task: Annotated[str, Parameter(help="Only this task: id, end of an id, or `last`.", show_default=False)] = "",
    type: Annotated[
        str, Parameter(help="Only these types; `*` and `?` match, commas separate.", show_default=False)
    ] = "",
    after: Annotated[int | None, Parameter(help="All after this position, not only the last ones.")] = None,
    count: Annotated[int | None, Parameter(name=["--count", "-n"], help="How many (20 without --after).")] = None,
    follow: Annotated[
        bool, Flag, Parameter(name=["--follow", "-f"], help="Go on with what comes, until Ctrl-C.")
    ] = False,
    options: Common = COMMON,
) -> None:
    """Print events, oldest first. Reads the database: works beside a running DuckLM and without one.

    With `--json` every line is one event, as the API shows it.

    ```
    ducklm events tail --type 'task.tool_*' --follow
    ```
    """
    from api.cli import log
    from api.cli.event_line import EventPrinter
    from domain.errors import BadInput
    from domain.ids import task_stream

    if after is not None and after < 0:
        raise BadInput("--after must be a position, 0 or more")
    if count is not None and count < 0:
        raise BadInput("--count must be 0 or more")
    with log.opened(options) as database:
        stream = task_stream(log.find_task(database, task)) if task else ""
        selection = log.Selection(stream, type)
        show = EventPrinter(options.json, with_stream=not stream)
        if after is None:
            position = database.store.head()
            wanted: Iterable[Envelope] = selection.newest(database, DEFAULT_COUNT if count is None else count)
        else:
            position = after
            wanted = selection.after(database, after, count)
        for envelope in wanted:
            show(envelope)
        if follow:
            for envelope in log.follow(database, selection, max(position, show.position)):
                show(envelope)

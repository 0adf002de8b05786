"""``ducklm replay``: a task at any moment, from its events alone."""

from typing import Annotated, Any

from cyclopts import Parameter

from api.cli.options import COMMON, Common, TaskId


def replay(
    task: TaskId,
    /,
    *,
    at: Annotated[int | None, Parameter(help="The version to look at; the last one if left out.")] = None,
    options: Common = COMMON,
) -> int:
    """What a task was like at a step: its state, what changed, what the model had directed, and the exact context it saw.

    Everything is computed from the log; no server is needed. The hash of the context is compared with the recorded
    one: exit code 1 when they differ.

    ```
    ducklm replay last --at 7
    ```
    """
    from api.cli import log
    from api.cli.output import print_json
    from api.cli.replay_view import as_json, print_moment
    from domain.errors import NotFound
    from domain.ids import task_stream
    from domain.task.replay import moment

    with log.opened(options) as database:
        task_id = log.find_task(database, task)
        events = database.store.load(task_stream(task_id))
        if not events:
            raise NotFound(f"there is no task {task_id!r}; `ducklm tasks` lists them")
        seen = moment(task_id, events, database.history.messages, at)
        sent: Any = None
        problem = ""
        if seen.state.prefix_sha256:
            try:
                sent = database.history.exact(seen.state)
            except NotFound as error:
                problem = f"the context can't be shown in full: {error}"
    if options.json:
        print_json(as_json(seen, sent, problem))
    else:
        print_moment(seen, sent, problem)
    return 1 if seen.verdict == "mismatch" else 0

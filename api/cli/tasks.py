"""``ducklm tasks``: lists, one task in detail, cancelling and going on."""

from typing import Annotated, Any

from cyclopts import App, Parameter

from api.cli.options import ONLINE, Flag, Limit, Online, TaskId

tasks = App(name="tasks", help="Tasks: list them, look into one, cancel it or go on with it.")


@tasks.default
async def list_tasks(
    *,
    status: Annotated[str | None, Parameter(help="Only those that are running, paused, completed, failed, …")] = None,
    limit: Limit = 20,
    options: Online = ONLINE,
) -> None:
    """List tasks, newest first.

    ```
    ducklm tasks --status waiting_for_approval
    ```
    """
    from typing import get_args

    from api.cli.output import ago, duration, print_json, print_table, share, status_text
    from domain.errors import BadInput
    from domain.task.state import Status

    if status is not None and status not in get_args(Status):
        raise BadInput(f"there is no status {status!r}; there are: {', '.join(get_args(Status))}")
    async with options.client() as client:
        found = await client.items("/v1/tasks", limit, status=status)
    if options.json:
        print_json(found)
        return
    rows = [
        (
            t["task_id"],
            status_text(t["status"]),
            ago(t["created_at"]),
            f"{t['prompt_tokens'] + t['completion_tokens']:,}",
            share(t["cached_tokens"] / t["prompt_tokens"] if t["prompt_tokens"] else None),
            duration(t["model_ms"] + t["tool_ms"]),
            t["title"],
        )
        for t in found
    ]
    print_table(
        ("task", "status", "asked", ">tokens", ">cached", ">work", "~question"), rows, 'no tasks; `ducklm ask "…"`'
    )


@tasks.command
async def show(task: TaskId, /, *, options: Online = ONLINE) -> None:
    """One task: its state, and its steps with tokens read anew, the share from the cache, and time.

    ```
    ducklm tasks show last
    ```
    """
    from api.cli.output import print_json
    from api.cli.task_view import print_task
    from domain.task.timeline import timeline

    async with options.client() as client:
        task_id = await client.task_id(task)
        found = await client.get(f"/v1/tasks/{task_id}")
        steps = timeline(await client.task_events(task_id))
    if options.json:
        print_json({**found, "steps": steps})
    else:
        print_task(found, steps)


@tasks.command
async def cancel(
    task: TaskId,
    /,
    *,
    reason: Annotated[str, Parameter(help="Kept with the task.", show_default=False)] = "",
    options: Online = ONLINE,
) -> None:
    """Cancel a task, in the middle of whatever it does.

    ```
    ducklm tasks cancel last --reason "wrong folder"
    ```
    """
    from api.cli.output import out, print_json

    async with options.client() as client:
        task_id = await client.task_id(task)
        found: Any = await client.post(f"/v1/tasks/{task_id}/cancel", {"reason": reason})
    if options.json:
        print_json(found)
    else:
        out.print(f"{task_id} is {found['status']}")


@tasks.command(name="continue")
async def go_on(
    task: TaskId,
    /,
    *,
    yes: Annotated[bool, Flag, Parameter(name=["--yes", "-y"], help="Allow once whatever it asks for.")] = False,
    options: Online = ONLINE,
) -> int:
    """Go on with a task that is paused, failed or was stopped by its limits, and watch it as `ask` does.

    ```
    ducklm tasks continue last
    ```
    """
    from api.cli.ask import hold_turn

    async def path(client: Any) -> str:
        return f"/v1/tasks/{await client.task_id(task)}/continue/stream"

    async def body(client: Any, is_local: bool) -> dict[str, Any]:
        return {}

    return await hold_turn(options, yes, path, body, start_here=False)

"""``ducklm approvals`` and ``ducklm grants``: what waits for a yes, and what was allowed for ever."""

from typing import Annotated, Any

from cyclopts import App, Parameter

from api.cli.options import ONLINE, Flag, Limit, Online

approvals = App(name="approvals", help="Approvals that tasks wait for: list, allow, deny.")
grants = App(name="grants", help="What was allowed for ever: list, revoke.")
ApprovalId = Annotated[str, Parameter(help="The approval's id.")]


@approvals.default
async def list_approvals(*, options: Online = ONLINE) -> None:
    """List what waits for an answer, oldest first.

    ```
    ducklm approvals
    ```
    """
    from api.cli.output import ago, print_json, print_table
    from domain.task.timeline import arguments_line

    async with options.client() as client:
        found = (await client.get("/v1/approvals/pending"))["items"]
    if options.json:
        print_json(found)
        return
    rows = [
        (a["approval_id"], ago(a["requested_at"]), a["risk"], a["tool"], arguments_line(a["tool"], a["arguments"]))
        for a in found
    ]
    print_table(("approval", "asked", "risk", "tool", "~action"), rows, "nothing waits for approval")


@approvals.command
async def allow(
    approval: ApprovalId,
    /,
    *,
    forever: Annotated[bool, Flag, Parameter(help="Exactly this action in this workspace, from now on.")] = False,
    options: Online = ONLINE,
) -> None:
    """Allow what a task asks for, once or for ever.

    ```
    ducklm approvals allow 0b5f… --forever
    ```
    """
    await _answer(approval, "allow_forever" if forever else "allow_once", None, options)


@approvals.command
async def deny(
    approval: ApprovalId,
    /,
    *,
    reason: Annotated[str, Parameter(help="Goes to the model.", show_default=False)] = "",
    options: Online = ONLINE,
) -> None:
    """Deny it; the task goes on without.

    ```
    ducklm approvals deny 0b5f… --reason "use the test database"
    ```
    """
    await _answer(approval, "deny", {"reason": reason}, options)


async def _answer(approval: str, verb: str, body: Any, options: Online) -> None:
    from api.cli.output import out, print_json

    async with options.client() as client:
        answer = await client.post(f"/v1/approvals/{approval}/{verb}", body)
    if options.json:
        print_json(answer)
    else:
        out.print(f"{answer['status'].replace('_', ' ')}; task {answer['task_id']} goes on")


@grants.default
async def list_grants(*, limit: Limit = 50, options: Online = ONLINE) -> None:
    """List what was allowed for ever, newest first.

    ```
    ducklm grants --json
    ```
    """
    from api.cli.output import ago, print_json, print_table
    from domain.task.timeline import arguments_line

    async with options.client() as client:
        found = await client.items("/v1/grants", limit)
    if options.json:
        print_json(found)
        return
    rows = [
        (
            g["grant_id"],
            "revoked" if g["revoked_at"] else "in force",
            ago(g["issued_at"]),
            g["uses"],
            g["workspace"],
            f"{g['tool']} {arguments_line(g['tool'], g['arguments'])}",
        )
        for g in found
    ]
    print_table(("grant", "state", "given", ">uses", "workspace", "~action"), rows, "nothing is allowed for ever")


@grants.command
async def revoke(
    grant: Annotated[str, Parameter(help="The grant's id.")],
    /,
    *,
    options: Online = ONLINE,
) -> None:
    """Take a grant back: the action is asked for again.

    ```
    ducklm grants revoke 0198…
    ```
    """
    from api.cli.output import out, print_json

    async with options.client() as client:
        answer = await client.post(f"/v1/grants/{grant}/revoke")
    if options.json:
        print_json(answer)
    else:
        out.print(f"revoked {grant}")

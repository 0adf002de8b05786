"""``ducklm token``, ``ducklm open`` and ``ducklm conversations``."""

from typing import Annotated

from cyclopts import App, Parameter

from api.cli.options import COMMON, ONLINE, Common, Flag, Limit, Online

conversations = App(name="conversations", help="Conversations: list them, read one.")


def token(*, options: Common = COMMON) -> None:
    """Print the access token of this home; it is made when there is none yet.

    ```
    curl -H "Authorization: Bearer $(ducklm token)" http://127.0.0.1:8000/v1/status
    ```
    """
    from api.cli.output import print_json
    from api.database import prepare_home
    from api.security import load_token

    settings = options.settings()
    found = load_token(prepare_home(settings), settings.token)
    if options.json:
        print_json({"token": found})
    else:
        print(found)


def open_console(
    *,
    print_only: Annotated[bool, Flag, Parameter(name="--print", help="Only print the link.")] = False,
    options: Online = ONLINE,
) -> None:
    """Open the console in the browser, logged in.

    ```
    ducklm open
    ```
    """
    import webbrowser

    from api.cli.client import need_server
    from api.cli.output import out, print_json

    server = need_server(options.settings(), options.url)
    link = f"{server.url}/?token={server.token}"
    opened = False if print_only or options.json else webbrowser.open(link)
    if options.json:
        print_json({"url": link})
    elif opened:
        out.print(f"opened {server.url}")
    else:
        print(link)


@conversations.default
async def list_conversations(
    *,
    archived: Annotated[bool, Flag, Parameter(help="Those that are archived.")] = False,
    limit: Limit = 20,
    options: Online = ONLINE,
) -> None:
    """List conversations, the latest used first.

    ```
    ducklm conversations
    ```
    """
    from api.cli.output import ago, print_json, print_table, status_text

    async with options.client() as client:
        found = await client.items("/v1/conversations", limit, archived=archived)
    if options.json:
        print_json(found)
        return
    rows = [
        (
            c["conversation_id"],
            c["message_count"],
            status_text(c["last_status"] or ""),
            ago(c["updated_at"]),
            c["title"],
        )
        for c in found
    ]
    print_table(("conversation", ">messages", "last task", "used", "~title"), rows, "no conversations yet")


@conversations.command
async def show(
    conversation: Annotated[str, Parameter(help="Its id, or `last`.")],
    /,
    *,
    limit: Limit = 500,
    options: Online = ONLINE,
) -> None:
    """Read a conversation, oldest message first.

    ```
    ducklm conversations show last
    ```
    """
    from api.cli.output import ago, out, print_json, safe
    from domain.errors import NotFound

    async with options.client() as client:
        if conversation == "last":
            latest = await client.items("/v1/conversations", 1)
            if not latest:
                raise NotFound("there is no conversation yet")
            conversation = latest[0]["conversation_id"]
        found = await client.items(f"/v1/conversations/{conversation}/messages", limit)
    if options.json:
        print_json(found)
        return
    for message in found:
        style = "bold green" if message["role"] == "user" else "bold magenta"
        out.print(f"{message['role']} · {ago(message['time'])}", style=style)
        out.print(safe(message["text"]) + "\n", markup=False)
        for notice in message["notices"] or ():
            out.print(f"⚠ {safe(notice)}\n", style="yellow", markup=False)

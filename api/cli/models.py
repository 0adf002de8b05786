"""``ducklm models``: who answers for which role, whether they do, and how the transport was chosen."""

from cyclopts import App

from api.cli.options import COMMON, ONLINE, Common, Online

models = App(name="models", help="Roles and the models behind them.")


@models.default
async def list_roles(*, options: Online = ONLINE) -> None:
    """List the roles as configured.

    ```
    ducklm models
    ```
    """
    from api.cli.output import print_json, print_table

    async with options.client() as client:
        found = (await client.get("/v1/models/roles"))["items"]
    if options.json:
        print_json(found)
        return
    rows = [
        (
            r["name"],
            r["endpoint"],
            r["model"] or "(its own)",
            r["temperature"],
            r["max_output_tokens"],
            r["response_schema"],
        )
        for r in found
    ]
    print_table(("role", "server", "model", ">temperature", ">most tokens", "~answers as"), rows, "no roles")


@models.command
async def ping(*, options: Online = ONLINE) -> int:
    """Ask every role's model for one token. Exit code 6 when one does not answer.

    ```
    ducklm models ping
    ```
    """
    from rich.text import Text

    from api.cli.output import duration, print_json, print_table

    async with options.client() as client:
        found = (await client.get("/v1/models/ping"))["items"]
    if options.json:
        print_json(found)
    else:
        rows = [
            (
                p["role"],
                Text("ok", "green") if p["ok"] else Text("fail", "bold red"),
                duration(p["latency_ms"]) if p["ok"] else "",
                p["model"],
                p["error"],
            )
            for p in found
        ]
        print_table(("role", "state", ">time", "model", "~error"), rows, "no roles")
    return 0 if all(p["ok"] for p in found) else 6


@models.command
async def probe(*, options: Common = COMMON) -> None:
    """How directives are asked for, and what each way costs: characters of the prompt that a step makes the server read
    again.

    A server of your own (DUCKLM_LLAMA_URL) is tried now; otherwise it is shown what tasks found out, from the log.

    ```
    ducklm models probe
    ```
    """
    from api.cli.output import print_json
    from api.cli.probe_view import print_probe, probe_now, recorded_probes

    settings = options.settings()
    found = [await probe_now(settings)] if settings.llama_url else recorded_probes(options)
    if options.json:
        print_json(found)
        return
    for each in found:
        print_probe(each)

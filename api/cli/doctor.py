"""``ducklm doctor``: what was found, what is missing, what to do about it."""

from api.cli.options import COMMON, Common


async def doctor(*, options: Common = COMMON) -> int:
    """Look at everything DuckLM needs, and say what to do about what is missing. Exit code 1 when something fails.

    ```
    ducklm doctor
    ```
    """
    from rich.text import Text

    from api.cli.checks import examine
    from api.cli.output import out, print_json, safe, status_text

    found = [check async for check in examine(options)]
    failed = any(check.status == "fail" for check in found)
    if options.json:
        print_json({"ok": not failed, "checks": found})
        return int(failed)
    for check in found:
        status = status_text(check.status)
        status.pad_right(6 - len(status))
        out.print(Text.assemble(status, (f"{check.name:<14}", "bold"), safe(check.found)))
        if check.advice:
            out.print(Text.assemble(" " * 20, ("→ ", "yellow"), safe(check.advice)))
    count = sum(check.status == "warn" for check in found)
    if failed:
        out.print("\nSomething is missing: see the lines with → above.", style="bold red")
    else:
        out.print(f"\nReady{f', {count} things to know' if count else ''}: `ducklm up`", style="bold green")
    return int(failed)

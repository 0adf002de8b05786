"""``ducklm projections``: how far the read models are, building them anew, comparing them with the log."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from api.cli.options import COMMON, Common

if TYPE_CHECKING:
    from projections.rebuild import Progress

projections = App(name="projections", help="Read models: their position, building them anew, verifying them.")


@projections.command
def status(*, options: Common = COMMON) -> None:
    """How far each projection is behind the log, and what stopped one that is parked.

    ```
    ducklm projections status
    ```
    """
    from rich.text import Text

    from api.cli import log
    from api.cli.output import ago, out, print_json, print_table
    from projections import checkpoints
    from projections.catalogue import all_projections

    with log.opened(options) as database:
        with database.engine.begin() as conn:
            checkpoints.create_table(conn)
            standing = {row["name"]: row for row in checkpoints.all_checkpoints(conn)}
        head = database.store.head()
    current = {p.name: p.version for p in all_projections()}
    rows = [_standing(name, version, standing.get(name), head) for name, version in current.items()]
    if options.json:
        print_json({"head": head, "projections": rows})
        return
    styles = {"up to date": "green", "behind": "yellow", "parked": "bold red"}
    print_table(
        ("projection", ">position", ">behind", "state", "updated", "~reason"),
        [
            (
                r["name"], r["position"], r["lag"], Text(r["state"], styles.get(r["state"], "yellow")),
                ago(r["updated_at"]) if r["updated_at"] else "", r["parked_reason"] or "",
            )
            for r in rows
        ],
        "none",
    )  # fmt: skip
    out.print(f"the log ends at position {head}", style="dim")


def _standing(name: str, version: int, row: dict[str, Any] | None, head: int) -> dict[str, Any]:
    if row is None:
        row = {"version": version, "position": 0, "parked_position": None, "parked_reason": None, "updated_at": None}
        state = "never ran"
    elif row["version"] != version:
        state = "outdated"
    elif row["parked_position"] is not None:
        state = "parked"
    else:
        state = "up to date" if row["position"] >= head else "behind"
    return {
        "name": name, "state": state, "version": row["version"], "position": row["position"],
        "lag": head - row["position"], "parked_position": row["parked_position"],
        "parked_reason": row["parked_reason"], "updated_at": row["updated_at"],
    }  # fmt: skip


@projections.command
def rebuild(
    name: Annotated[str, Parameter(help="Its name, see `projections status`.")], /, *, options: Common = COMMON
) -> None:
    """Build a read model anew from the log, beside the one in use, and swap it in. Safe while DuckLM runs.

    ```
    ducklm projections rebuild tasks
    ```
    """
    import time

    from api.cli import log
    from api.cli.output import out, print_json
    from projections.rebuild import Rebuilder

    started = time.monotonic()
    with log.opened(options) as database, _bar(f"rebuilding {name}", options.json) as progress:
        count = Rebuilder(database.engine, database.store).rebuild(name, progress)
    seconds = max(time.monotonic() - started, 1e-9)
    if options.json:
        print_json({"name": name, "events": count, "seconds": round(seconds, 3), "per_second": round(count / seconds)})
    else:
        out.print(f"rebuilt {name} from {count:,} events in {seconds:.1f} s")


@projections.command
def verify(
    name: Annotated[str | None, Parameter(help="Its name; all of them if left out.")] = None,
    /,
    *,
    options: Common = COMMON,
) -> int:
    """Compare read models, row by row, with ones folded from the log. Exit code 1 when any row differs.

    ```
    ducklm projections verify
    ```
    """
    from api.cli import log
    from api.cli.output import print_json
    from api.cli.projection_view import print_differences
    from projections.catalogue import READ_MODELS
    from projections.rebuild import Difference, Rebuilder

    found: dict[str, list[Difference]] = {}
    with log.opened(options) as database:
        rebuilder = Rebuilder(database.engine, database.store)
        for each in [name] if name else list(READ_MODELS):
            with _bar(f"verifying {each}", options.json) as progress:
                found[each] = rebuilder.verify(each, progress)
    if options.json:
        print_json([{"name": n, "ok": not rows, "differences": rows} for n, rows in found.items()])
    else:
        print_differences(found)
    return 1 if any(found.values()) else 0


@contextmanager
def _bar(text: str, as_json: bool) -> "Iterator[Progress]":
    """A progress bar on standard error, with events a second and the time left."""
    from api.cli.projection_view import progress_bar

    with progress_bar(text, as_json) as progress:
        yield progress

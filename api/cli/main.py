"""``ducklm``: all commands, in one place."""

import asyncio
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from api.cli.output import fail
from api.settings import load_settings
from domain.errors import DuckError

app = App(
    name="ducklm",
    help="A local-first cognitive runtime: an agent on your own models, every step an event.",
    version=lambda: version("ducklm"),
)

Home = Annotated[Path | None, Parameter(help="Folder of all state (DUCKLM_HOME).")]
Port = Annotated[int | None, Parameter(help="Port to listen on (DUCKLM_PORT).")]
Host = Annotated[str | None, Parameter(help="Address to listen on (DUCKLM_HOST).")]


@app.command
def up(*, home: Home = None, host: Host = None, port: Port = None) -> None:
    """Start everything in one process: database, model engine, worker, API and console. Ctrl-C stops it."""
    from api.cli.up import up as run_up

    run_up(load_settings(home=str(home) if home else None, host=host, port=port))


@app.command
def serve(*, home: Home = None, host: Host = None, port: Port = None) -> None:
    """API, console and projections without a worker: `ducklm worker` processes do the work."""
    from api.cli.up import up as run_up

    run_up(load_settings(home=str(home) if home else None, host=host, port=port), with_worker=False)


@app.command
def worker(*, concurrency: int | None = None) -> None:
    """Work on tasks of the same database (DUCKLM_DATABASE_URL). Any number of these may run."""
    from api.cli.up import work

    asyncio.run(work(load_settings(concurrency=concurrency)))


def run() -> None:
    """The entry point: errors become a message and an exit code."""
    try:
        app()
    except DuckError as error:
        sys.exit(fail(error, "--json" in sys.argv))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    run()

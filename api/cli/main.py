"""``ducklm``: all commands, in one place. Only what help needs is imported here; commands import the rest."""

import os
import sys
import warnings
from importlib.metadata import version
from typing import Annotated

from cyclopts import App, CycloptsError, Parameter

from api.cli.access import conversations, open_console, token
from api.cli.approvals import approvals, grants
from api.cli.ask import ask
from api.cli.doctor import doctor
from api.cli.events import events
from api.cli.models import models
from api.cli.options import COMMON, Common
from api.cli.projections import projections
from api.cli.replay import replay
from api.cli.tasks import tasks
from domain.errors import BadInput, DuckError

app = App(
    name="ducklm",
    help="A local-first cognitive runtime: an agent on your own models, every step an event.\n\n"
    'Start with `ducklm up`, or just `ducklm ask "what is in this folder?"`. Every command takes `--json`.',
    help_format="markdown",
    version=lambda: version("ducklm"),
)
for sub_app in (tasks, conversations, approvals, grants, events, projections, models):
    app.command(sub_app)
app.command(ask)
app.command(replay)
app.command(doctor)
app.command(token)
app.command(open_console, name="open")

Port = Annotated[int | None, Parameter(help="Port to listen on (DUCKLM_PORT).")]
Host = Annotated[str | None, Parameter(help="Address to listen on (DUCKLM_HOST).")]


@app.command
def up(*, host: Host = None, port: Port = None, options: Common = COMMON) -> None:
    """Start everything in one process: database, model engine, worker, API and console. Ctrl-C stops it.

    With `--json` one object with the address and a login link is printed when it is ready.

    ```
    ducklm up --port 8123
    ```
    """
    from api.cli.up import up as run_up

    run_up(options.settings(host=host, port=port), as_json=options.json)


@app.command
def serve(*, host: Host = None, port: Port = None, options: Common = COMMON) -> None:
    """API, console and projections without a worker: `ducklm worker` processes do the work.

    ```
    DUCKLM_DATABASE_URL=postgresql://db/ducklm ducklm serve
    ```
    """
    from api.cli.up import up as run_up

    run_up(options.settings(host=host, port=port), with_worker=False, as_json=options.json)


@app.command
async def worker(
    *,
    concurrency: Annotated[int | None, Parameter(help="Tasks at once (DUCKLM_CONCURRENCY).")] = None,
    options: Common = COMMON,
) -> None:
    """Work on tasks of the same database (DUCKLM_DATABASE_URL). Any number of these may run.

    ```
    DUCKLM_DATABASE_URL=postgresql://db/ducklm ducklm worker --concurrency 8
    ```
    """
    from api.cli.up import work

    await work(options.settings(concurrency=concurrency), as_json=options.json)


def run(arguments: list[str] | None = None) -> None:
    """The entry point: errors become a message and an exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    # The embedded Postgres's package looks for a folder that it does not get to use.
    warnings.filterwarnings("ignore", "XDG_RUNTIME_DIR is not set")
    try:
        code = app(given, exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
    except CycloptsError as error:
        command = " ".join(("ducklm", *(error.command_chain or ())))
        code = _told(BadInput(f"{_sentence(error)} See `{command} --help`."), given)
    except DuckError as error:
        code = _told(error, given)
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:
        # Whoever read our output has seen enough (`| head`).
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 141
    except Exception as error:
        if os.environ.get("DUCKLM_LOG_LEVEL", "").lower() == "debug":
            raise
        text = f"an unexpected {type(error).__name__}: {error}. That is a fault of DuckLM; DUCKLM_LOG_LEVEL=debug shows where"
        code = _told(DuckError(text), given)
    sys.exit(code if isinstance(code, int) else 0)


def _told(error: DuckError, given: list[str]) -> int:
    from api.cli.output import fail

    return fail(error, "--json" in given)


def _sentence(error: CycloptsError) -> str:
    text = " ".join(str(error).split())
    return text if text.endswith((".", "?", "!")) else f"{text}."


if __name__ == "__main__":
    run()

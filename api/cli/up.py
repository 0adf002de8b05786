"""``ducklm up``, ``serve`` and ``worker``: the program itself."""

import asyncio
import re
import socket
import time
from collections.abc import Callable

from api.bootstrap import make_runtime
from api.cli.output import err, out, print_json_line
from api.cli.running import only_one, write_server_file
from api.database import prepare_home
from api.logs import configure_logs
from api.runtime import Runtime
from api.server import address, listen, serve, stop_signals
from api.settings import Settings

_PERCENT = re.compile(r" (\d+)%$")


def up(settings: Settings, with_worker: bool = True, as_json: bool = False) -> None:
    """Everything in one process: database, engine, projections, worker and API, until Ctrl-C. Raises ``SetupError``."""
    started = time.monotonic()
    home = prepare_home(settings)
    configure_logs(settings.log_level, home / "logs" / "ducklm.log")
    with only_one(home):
        sock = listen(settings)
        try:
            asyncio.run(_run(settings, sock, with_worker, started, as_json))
        finally:
            sock.close()
    if not as_json:
        out.print("stopped; everything is kept")


async def _run(settings: Settings, sock: socket.socket, with_worker: bool, started: float, as_json: bool) -> None:
    report = reporter(started)
    url = address(sock)

    def on_ready() -> None:
        write_server_file(runtime.home, url)
        if as_json:
            print_json_line({"url": url, "login": f"{url}/?token={runtime.token}", "home": str(runtime.home)})
        else:
            out.print(f"[bold green]DuckLM ready at[/] {url}/?token={runtime.token}")
            _hints(runtime)

    with stop_signals() as stopping:
        runtime = await make_runtime(settings, report, with_worker=with_worker, stopping=stopping)
        await serve(runtime, sock, on_ready)


def reporter(started: float, say: Callable[[str], None] | None = None) -> Callable[[str], None]:
    """Progress lines, each once, with the seconds since the start; to standard error, or by ``say``. Percentages change
    in place on a terminal, and are told every quarter elsewhere."""
    last = [""]

    def report(text: str) -> None:
        percent = _PERCENT.search(text)
        in_place = percent is not None and say is None and err.is_terminal
        key = text if percent is None or in_place else f"{text[: percent.start()]}{int(percent[1]) // 25}"
        if key != last[0]:
            last[0] = key
            line = f"{time.monotonic() - started:5.1f} s  {text}"
            end = "\r" if in_place and percent and percent[1] != "100" else "\n"
            say(line) if say else err.print(line, markup=False, end=end)

    return report


def _hints(runtime: Runtime) -> None:
    engine = runtime.model_engine
    if engine is not None and engine.info.smoke_test_model:
        out.print(
            "The built-in model is a very small one, for smoke tests only. For real work start a llama-server and set\n"
            "DUCKLM_LLAMA_URL=http://127.0.0.1:8080, or set DUCKLM_MODEL to a GGUF file."
        )
    out.print(f"workspace {runtime.settings.workspace_path} · data {runtime.home} · Ctrl-C stops", markup=False)


async def work(settings: Settings, as_json: bool = False) -> None:
    """A worker of its own, beside servers elsewhere on the same database, until SIGINT or SIGTERM."""

    configure_logs(settings.log_level)
    with stop_signals() as stopping:
        runtime = await make_runtime(settings, reporter(time.monotonic()), stopping=stopping)
        await runtime.start()
        if as_json:
            print_json_line({"worker": True, "concurrency": settings.concurrency})
        else:
            out.print(f"worker with {settings.concurrency} places is ready · Ctrl-C stops")
        await stopping.wait()
        await runtime.stop()

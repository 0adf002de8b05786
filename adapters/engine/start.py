"""Chooses an engine and starts it."""

import asyncio
import secrets
import socket
from pathlib import Path
from urllib.parse import urlsplit

from adapters.engine.command import Launch, llama_server_launch, server_flags, xllamacpp_launch
from adapters.engine.discovery import find_llama_server, xllamacpp_version
from adapters.engine.handle import EngineHandle, ExternalEngine
from adapters.engine.managed import ManagedEngine
from adapters.engine.model_file import choose_model
from adapters.engine.settings import Engine, EngineKind, EngineSettings, Report
from domain.errors import SetupError


async def start_engine(settings: EngineSettings, report: Report, wait: bool = True) -> EngineHandle:
    """A given address, else a llama-server program, else xllamacpp. With ``wait`` it returns when the engine is ready
    (an external one: when it has been asked once), without as soon as it is started. Raises ``SetupError``.

    Call it on the thread that lives as long as the program: Linux ends the engine together with that thread."""
    handle = _external(settings, report) if settings.llama_url else await _own(settings, report)
    handle.launch()
    if wait:
        try:
            await handle.wait_ready()
        except BaseException:
            await handle.stop()
            raise
    return handle


def _external(settings: EngineSettings, report: Report) -> EngineHandle:
    url = settings.llama_url.rstrip("/").removesuffix("/v1")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SetupError(f"{settings.llama_url!r} is no address of a model server: write http://HOST:PORT")
    return ExternalEngine(Engine("external", url, ""), settings.llama_api_key, report)


async def _own(settings: EngineSettings, report: Report) -> EngineHandle:
    program = find_llama_server(settings) if settings.engine != "xllamacpp" else None
    if program is None and (settings.engine == "llama-server" or not xllamacpp_version()):
        wanted = settings.engine or "model engine"
        raise SetupError(
            f"no {wanted} is installed: set DUCKLM_LLAMA_URL to a running llama-server, put llama-server on PATH "
            "(llama/build_vulkan.sh builds one), or install the extra ducklm[local]"
        )
    model = await asyncio.to_thread(choose_model, settings, report)
    port = _free_port(settings)
    # every other program of this machine, and every web page, can reach a loopback port: hence a key
    api_key = secrets.token_urlsafe(24)
    kind: EngineKind
    launch: Launch
    if program is not None:
        kind = "llama-server"
        launch = llama_server_launch(program, await server_flags(program), settings, model, port, api_key)
    else:
        kind = "xllamacpp"
        launch = xllamacpp_launch(settings, model, port, api_key)
    info = Engine(kind, f"http://{_bracketed(settings.host)}:{port}", model.name, model.smoke_test)
    return ManagedEngine(info, api_key, launch, _log(settings), report)


def _free_port(settings: EngineSettings) -> int:
    """The configured port if it is free, or any free one. The engine binds it a moment later; if somebody is quicker,
    it dies and the diagnosis says so."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((settings.host, settings.port))
        except OSError as error:
            raise SetupError(
                f"the engine cannot listen on {settings.host}:{settings.port}: {error.strerror}. Stop what is using it "
                "or choose another port (0 picks a free one)"
            ) from error
        return int(listener.getsockname()[1])


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _log(settings: EngineSettings) -> Path:
    return settings.home / "logs" / "engine.log"

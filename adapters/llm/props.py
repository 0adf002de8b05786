"""What a model server says about itself, from ``/props`` (llama-server) or ``/v1/models`` (everybody else)."""

import hashlib
from typing import Any

from msgspec import Struct

from adapters.llm.lenient import as_int, as_list, as_object, as_text
from adapters.llm.link import HttpRefusal, Link
from adapters.llm.text import clean, short_model
from domain.model import ServerInfo

_ABSENT = (404, 405, 501)
_WINDOW_KEYS = ("max_model_len", "max_context_length", "context_length", "context_window")
"""Where vLLM, LM Studio and hosted services put the context length."""


class Props(Struct, frozen=True):
    """``llama``: there was a ``/props``. ``parallel_calls``: the template takes several tool calls in one message."""

    info: ServerInfo
    llama: bool
    parallel_calls: bool = True


async def read_props(link: Link, model: str) -> Props:
    """Asks the server; ``model`` picks one behind a router. Raises ``ModelError``."""
    try:
        body = await link.get("/props", **({"model": model} if model else {}))
    except HttpRefusal as refused:
        if refused.status not in _ABSENT:
            raise link.failure(refused) from None
        return Props(await _from_models(link, model), llama=False)
    return _from_props(body, link.shown)


def _from_props(body: dict[str, Any], url: str) -> Props:
    caps = as_object(body.get("chat_template_caps"))
    template = as_text(body.get("chat_template"))
    info = ServerInfo(
        url=url,
        model=short_model(clean(as_text(body.get("model_alias")) or as_text(body.get("model_path")))),
        context_tokens=as_int(as_object(body.get("default_generation_settings")).get("n_ctx")),
        slots=as_int(body.get("total_slots")),
        build=clean(as_text(body.get("build_info"))),
        template_hash=hashlib.sha256(template.encode("utf-8", "replace")).hexdigest() if template else "",
        native_tools=caps.get("supports_tools") is True and caps.get("supports_tool_calls") is True,
    )
    return Props(info, llama=True, parallel_calls=caps.get("supports_parallel_tool_calls") is not False)


async def _from_models(link: Link, model: str) -> ServerInfo:
    """The entry of ``model``, or the first one where none is configured. Some proxies have no list."""
    try:
        body = await link.get("/v1/models")
    except HttpRefusal as refused:
        if refused.status not in _ABSENT:
            raise link.failure(refused) from None
        return ServerInfo(link.shown, model)
    entries = [entry for entry in as_list(body.get("data")) if isinstance(entry, dict)]
    known = next((e for e in entries if not model or e.get("id") == model), {})
    window = as_int(as_object(known.get("meta")).get("n_ctx")) or next(
        (size for key in _WINDOW_KEYS if (size := as_int(known.get(key)))), 0
    )
    return ServerInfo(link.shown, model or clean(as_text(known.get("id"))), window)

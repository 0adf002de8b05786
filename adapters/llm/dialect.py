"""The request body, in the dialect that a server understands.

llama-server takes fields that strict OpenAI-compatible servers refuse. A server starts with the dialect its
``/props`` suggests; a refusal that names a field drops that field for good.
"""

import re
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from adapters.llm.text import clean
from domain.messages import Message, wire
from domain.model import ModelRequest

LLAMA_ONLY = frozenset({"return_progress", "cache_prompt"})
_DROPPABLE = (*sorted(LLAMA_ONLY), "metadata", "stream_options", "parallel_tool_calls", "temperature")
_FIELD_REFUSED = re.compile(
    r"unknown|unrecogni[sz]ed|unsupported|not support|unexpected|extra (field|input)"
    r"|not permitted|not allowed|only allowed|invalid (parameter|field|argument)",
    re.IGNORECASE,
)


class Dialect(Struct, frozen=True):
    """``llama``: the server has ``/props``, and every complete stream of it ends with ``[DONE]``."""

    llama: bool
    parallel_calls: bool = True
    dropped: frozenset[str] = frozenset()
    limit_field: str = "max_tokens"


def wire_messages(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    """Messages as JSON objects that a template can render.

    llama-server answers 500 to a history with tool arguments that are no JSON object, so a call that was cut at the
    token limit would block its task for ever: such text is sent as ``{"invalid": text}``, the same in every request."""
    return [wire(_repaired(message)) for message in messages]


def _repaired(message: Message) -> Message:
    calls = tuple(
        call if _is_object(call.arguments) else replace(call, arguments=_as_object(call.arguments))
        for call in message.tool_calls
    )
    return message if calls == message.tool_calls else replace(message, tool_calls=calls)


def _is_object(text: str) -> bool:
    """By a strict parser: llama-server's is strict too, about half surrogate pairs for one."""
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return False


def _as_object(text: str) -> str:
    return msgspec.json.encode({"invalid": clean(text)}).decode()


def request_body(request: ModelRequest, dialect: Dialect, model: str) -> dict[str, Any]:
    """The JSON object for ``/v1/chat/completions``.

    The tool list stands near the top of the rendered prompt: a request that only keeps the prefix alive sends it
    too, with ``tool_choice: none`` (llama-server renders it all the same)."""
    body: dict[str, Any] = {
        "messages": wire_messages(request.messages),
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": request.temperature,
        dialect.limit_field: request.max_output_tokens,
        "metadata": {"role": request.role, "task_id": request.task_id, "call_id": request.call_id},
        "return_progress": True,
        "cache_prompt": True,
    }
    if model:
        body["model"] = model
    if request.tools:
        native = request.transport == "native_tools"
        body |= {"tools": list(request.tools), "tool_choice": "required" if native else "none"}
        if native:
            body["parallel_tool_calls"] = dialect.parallel_calls
    if request.transport == "json_schema" and request.schema is not None:
        named = {"name": request.schema_name or "answer", "schema": request.schema, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": named}
    return {key: value for key, value in body.items() if key not in dialect.dropped}


def narrower(dialect: Dialect, status: int, said: str) -> Dialect | None:
    """The dialect to try after a refusal, None when the refusal is about something else."""
    if status not in (400, 422):
        return None
    if dialect.limit_field == "max_tokens" and "max_completion_tokens" in said:
        return replace(dialect, limit_field="max_completion_tokens")
    if not _FIELD_REFUSED.search(said):
        return None
    named = frozenset(field for field in _DROPPABLE if re.search(rf"\b{field}\b", said))
    if named & LLAMA_ONLY:
        named |= LLAMA_ONLY
    return replace(dialect, dropped=dialect.dropped | named) if named - dialect.dropped else None

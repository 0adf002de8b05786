"""The port to a language model: one request, one reply, deltas on the way."""

from collections.abc import Callable
from typing import Any, Literal, Protocol

from msgspec import Struct

from domain.messages import Message, ToolCall

RoleName = Literal["thinker", "critic", "coder", "action", "summary", "recall", "sys_util", "memory_policy"]
Transport = Literal["native_tools", "json_schema", "text"]
"""How a constrained answer is asked for: the template's own tool calls, ``response_format``, or not at all."""


class Usage(Struct, frozen=True):
    """Tokens as the server counted them; 0 when it did not say."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0


class Timings(Struct, frozen=True):
    """llama-server's own figures (milliseconds, tokens); zeros on servers that send none."""

    cache_n: int = 0
    prompt_n: int = 0
    prompt_ms: float = 0.0
    predicted_n: int = 0
    predicted_ms: float = 0.0


class ModelRequest(Struct, frozen=True):
    """One call. ``metadata`` {role, task_id, call_id} goes to the server with it."""

    role: RoleName
    task_id: str
    call_id: str
    messages: tuple[Message, ...]
    transport: Transport = "text"
    tools: tuple[dict[str, Any], ...] = ()
    schema_name: str = ""
    schema: dict[str, Any] | None = None
    temperature: float = 0.7
    max_output_tokens: int = 1024


class ModelReply(Struct, frozen=True):
    """A complete answer. ``finish_reason`` is ``stop``, ``length`` or ``tool_calls``; latencies in ms."""

    content: str
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str = "stop"
    model: str = ""
    usage: Usage = Usage()
    timings: Timings = Timings()
    latency_ms: float = 0.0
    first_token_ms: float = 0.0


DeltaKind = Literal["reasoning", "content", "tool_call", "progress"]


class Delta(Struct, frozen=True):
    """A piece of a running answer. ``progress`` carries prefill counts (tokens) and no text."""

    kind: DeltaKind
    text: str = ""
    total: int = 0
    cached: int = 0
    processed: int = 0


class ServerInfo(Struct, frozen=True):
    """What is known of a model server. ``context_tokens`` is per slot, 0 when unknown."""

    url: str
    model: str = ""
    context_tokens: int = 0
    slots: int = 0
    build: str = ""
    template_hash: str = ""
    native_tools: bool = False


class ModelClient(Protocol):
    async def chat(self, request: ModelRequest, on_delta: Callable[[Delta], None]) -> ModelReply:
        """Runs one request to its end. Raises ``ModelError``; cancelling the coroutine frees the server's slot."""
        ...

    async def transport(self, role: RoleName) -> Transport:
        """The transport for constrained answers of this role, probed once per server and template."""
        ...

    async def info(self, role: RoleName) -> ServerInfo:
        """Properties of the server behind a role (cached until it changes model). Raises ``ModelError``."""
        ...

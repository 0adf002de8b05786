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


Observations = Literal["tool", "user"]


class Trial(Struct, frozen=True):
    """One message shape. Figures are characters of the previous prompt that did not match any more: ``loop`` for each
    tool step, ``final`` for the last one, whose observation also carries the change of role, ``next_message`` for the
    person's next message. ``problem`` says why the template does not take the shape at all."""

    transport: Transport
    observations: Observations
    reasoning: bool
    loop: tuple[int, ...] = ()
    final: int = 0
    next_message: int = 0
    problem: str = ""

    @property
    def lost(self) -> int:
        return sum(self.loop) + self.final

    @property
    def keeps(self) -> bool:
        """Whether a task is append-only in this shape (the person's next message may cost its last loop once)."""
        return not self.problem and self.lost == 0


class TransportProbe(Struct, frozen=True):
    """What was chosen for a server and template, and why.

    ``observations``: the message role that carries tool output. ``send_reasoning``: a reply's reasoning goes back with
    it, because the template then keeps the prefix. ``reason`` is for people."""

    url: str
    model: str
    template_hash: str
    transport: Transport
    observations: Observations
    send_reasoning: bool
    reason: str
    trials: tuple[Trial, ...] = ()


class ModelClient(Protocol):
    async def chat(self, request: ModelRequest, on_delta: Callable[[Delta], None]) -> ModelReply:
        """Runs one request to its end. Raises ``ModelError``; cancelling the coroutine frees the server's slot."""
        ...

    async def probe(self, role: RoleName) -> TransportProbe:
        """How constrained answers of this role are asked for, tried out once per server and template."""
        ...

    async def info(self, role: RoleName) -> ServerInfo:
        """Properties of the server behind a role (cached until it changes model). Raises ``ModelError``."""
        ...

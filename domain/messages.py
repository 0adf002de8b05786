"""What a model is shown and what it says, in the shape every chat endpoint shares."""

from typing import Any, Literal

from msgspec import Struct

Speaker = Literal["system", "user", "assistant", "tool"]


class ToolCall(Struct, frozen=True):
    """A native tool call of an assistant message. ``arguments`` is the JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str


class Message(Struct, frozen=True, omit_defaults=True):
    """One message of a chat. ``reasoning`` is sent back only when the template keeps the prefix with it."""

    role: Speaker
    content: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""


def wire(message: Message) -> dict[str, Any]:
    """The message as the JSON object of ``/v1/chat/completions``."""
    out: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.reasoning:
        out["reasoning_content"] = message.reasoning
    if message.tool_calls:
        out["tool_calls"] = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
            for c in message.tool_calls
        ]
    if message.tool_call_id:
        out["tool_call_id"] = message.tool_call_id
    return out

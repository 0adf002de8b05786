"""The script of a scripted llama-server: what it answers, in which order, and what goes wrong.

Replies are made by the small functions below (``say``, ``directive``, ``cut``, ``hang`` …) and queued by role. A test
reads as a dialogue; the wire format is no concern here.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

FINISH = "finish"
DEFAULT_SENTENCE = "This is a scripted answer."
DONE: dict[str, Any] = {"intent": "nothing more to do", "actions": [], "done": True}

Fault = Literal["", "status", "cut", "drop", "garbage", "error", "hang", "endless"]


@dataclass(frozen=True)
class Reply:
    """One answer. ``after`` counts the fake tokens that are sent before ``fault`` strikes; times are seconds."""

    content: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, Any], ...] = ()
    directive: dict[str, Any] | None = None
    finish_reason: str = ""
    token_delay: float = 0.0
    fault: Fault = ""
    after: int = 0
    seconds: float = 0.0
    ping: float = 0.0
    status: int = 200
    body: Any = None


@dataclass
class Request:
    """One request as it arrived (``arrived``: seconds since the epoch), and what became of it."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    arrived: float
    role: str = ""
    reply: Reply | None = None
    prompt_tokens: int = 0
    cached_tokens: int = 0
    tokens_sent: int = 0
    disconnected: bool = False
    finished: bool = False


Responder = Callable[[Request], Reply]


def say(text: str, reasoning: str = "", token_delay: float = 0.0) -> Reply:
    """Plain text, with thoughts before it."""
    return Reply(content=text, reasoning=reasoning, token_delay=token_delay)


def directive(value: dict[str, Any], reasoning: str = "", token_delay: float = 0.0) -> Reply:
    """An action directive ``{intent, actions, done}``: JSON content, or tool calls where the request has ``tools``."""
    return Reply(directive=value, reasoning=reasoning, token_delay=token_delay)


def calls(*named: tuple[str, Any], content: str = "", reasoning: str = "") -> Reply:
    """Native tool calls as they are; arguments that are a ``str`` go out verbatim (broken JSON, JSON in a string)."""
    return Reply(calls=named, content=content, reasoning=reasoning)


def act(tool: str, **arguments: Any) -> Reply:
    """Short for a directive with one action."""
    return directive({"intent": f"use {tool}", "actions": [{"tool": tool, "arguments": arguments}], "done": False})


def done(intent: str = "nothing more to do") -> Reply:
    """The directive that ends a loop."""
    return directive({**DONE, "intent": intent})


def only_reasoning(reasoning: str) -> Reply:
    """Everything in the thoughts, empty content: a common failure of small models."""
    return Reply(reasoning=reasoning)


def truncated(text: str, reasoning: str = "") -> Reply:
    """Text that hit the token limit (``finish_reason: length``)."""
    return Reply(content=text, reasoning=reasoning, finish_reason="length")


def http_error(status: int, message: str = "scripted error", kind: str = "server_error", **more: Any) -> Reply:
    """An error answer in llama-server's shape; ``more`` are further fields of the error object."""
    return Reply(
        fault="status", status=status, body={"error": {"code": status, "message": message, "type": kind, **more}}
    )


def loading() -> Reply:
    """What every endpoint says while the model loads."""
    return http_error(503, "Loading model", "unavailable_error")


def overflow(n_prompt_tokens: int, n_ctx: int) -> Reply:
    """The context overflow of one request, whatever its real size."""
    text = f"request ({n_prompt_tokens} tokens) exceeds the available context size ({n_ctx} tokens), try increasing it"
    return http_error(400, text, "exceed_context_size_error", n_prompt_tokens=n_prompt_tokens, n_ctx=n_ctx)


def malformed_body(body: str = '{"choices": [{"mess', status: int = 200) -> Reply:
    """A whole answer that is no JSON (a proxy's error page, a cut body), for stream and non-stream alike."""
    return Reply(fault="status", status=status, body=body)


def malformed_chunk(text: str = "one two three", after: int = 2) -> Reply:
    """A chunk that is no JSON after ``after`` tokens; the rest and ``[DONE]`` follow."""
    return Reply(content=text, fault="garbage", after=after)


def cut(text: str = "one two three four", after: int = 3) -> Reply:
    """The stream ends in good order after ``after`` tokens, but without finish chunk and ``[DONE]``."""
    return Reply(content=text, fault="cut", after=after)


def drop(text: str = "one two three four", after: int = 3) -> Reply:
    """The connection breaks after ``after`` tokens, as when the server is killed."""
    return Reply(content=text, fault="drop", after=after)


def stream_error(message: str = "scripted failure", after: int = 2, text: str = "one two three") -> Reply:
    """An ``error`` chunk in the middle of the stream, then the end without ``[DONE]``."""
    body = {"error": {"code": 500, "message": message, "type": "server_error"}}
    return Reply(content=text, fault="error", after=after, body=body)


def hang(seconds: float, text: str = "late but whole", after: int = 0, ping: float = 0.0) -> Reply:
    """Silence for ``seconds`` after ``after`` tokens (0: before the headers, too), then the rest. With ``ping``
    the SSE comments that llama-server sends while it is busy go on during the silence, one each ``ping`` seconds."""
    return Reply(content=text, fault="hang", after=after, seconds=seconds, ping=ping)


def endless(text: str = "word ", token_delay: float = 0.002) -> Reply:
    """The same text again and again until the client leaves; token limits are ignored."""
    return Reply(content=text, fault="endless", token_delay=token_delay)


def slow(reply: Reply, token_delay: float) -> Reply:
    """The same reply with ``token_delay`` seconds before each token."""
    return replace(reply, token_delay=token_delay)


KINDS: dict[str, Callable[..., Reply]] = {
    maker.__name__: maker
    for maker in (
        say, directive, calls, act, done, only_reasoning, truncated, http_error, loading, overflow,
        malformed_body, malformed_chunk, cut, drop, stream_error, hang, endless,
    )
}  # fmt: skip


def reply_from_json(entry: dict[str, Any]) -> Reply:
    """``{"kind": "say", "text": …}``: the maker's name and its arguments; ``calls`` takes them as
    ``named: [[tool, arguments], …]``."""
    arguments = {key: value for key, value in entry.items() if key not in ("kind", "role", "token_delay")}
    named = [(name, args) for name, args in arguments.pop("named", ())]
    reply = KINDS[entry["kind"]](*named, **arguments)
    return slow(reply, entry["token_delay"]) if "token_delay" in entry else reply


@dataclass
class _Entry:
    role: str
    answer: Reply | Responder
    when: Callable[[Request], bool] | None


@dataclass
class Script:
    """Queued replies, each used once and in order by role; ``"*"`` fits every role. Then the defaults."""

    entries: list[_Entry] = field(default_factory=list)
    defaults: dict[str, Reply | Responder] = field(default_factory=dict)

    def push(self, role: str, *answers: Reply | Responder, when: Callable[[Request], bool] | None = None) -> None:
        """Queues answers for a role; ``when`` restricts them to requests that it accepts."""
        self.entries.extend(_Entry(role, answer, when) for answer in answers)

    def default(self, role: str, answer: Reply | Responder) -> None:
        """What a role answers when the queue has nothing for it."""
        self.defaults[role] = answer

    def remaining(self, role: str = "*") -> int:
        """How many queued answers wait for a role (``"*"``: for all)."""
        return sum(role in ("*", entry.role) for entry in self.entries)

    def pick(self, request: Request) -> Reply:
        """Takes the next answer for a request out of the queue, or makes the default one."""
        for index, entry in enumerate(self.entries):
            if entry.role in ("*", request.role) and (entry.when is None or entry.when(request)):
                del self.entries[index]
                return _resolved(entry.answer, request)
        answer = self.defaults.get(request.role) or self.defaults.get("*")
        return _resolved(answer, request) if answer else default_reply(request)


def _resolved(answer: Reply | Responder, request: Request) -> Reply:
    return answer if isinstance(answer, Reply) else answer(request)


def default_reply(request: Request) -> Reply:
    """A done directive where tools are offered or the role acts, minimal JSON for a schema, else one sentence."""
    schema = requested_schema(request.body)
    offered = request.body.get("tools") and request.body.get("tool_choice") != "none"
    if offered or (request.role == "action" and schema):
        return Reply(directive=DONE)
    if schema is not None:
        return Reply(content=json.dumps(minimal(schema)))
    return Reply(content=DEFAULT_SENTENCE)


def requested_schema(body: dict[str, Any]) -> dict[str, Any] | None:
    """The JSON schema of ``response_format``, if the request has one."""
    wanted = body.get("response_format") or {}
    if wanted.get("type") == "json_schema":
        return dict((wanted.get("json_schema") or {}).get("schema") or {})
    return dict(wanted.get("schema") or {}) if wanted.get("type") == "json_object" else None


def minimal(schema: dict[str, Any]) -> Any:
    """The smallest value that satisfies a flat schema: empty texts and lists, the lowest number, the first choice."""
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    for choice in ("anyOf", "oneOf"):
        if schema.get(choice):
            return minimal(schema[choice][0])
    kind = schema.get("type", "object" if "properties" in schema else "null")
    match kind[0] if isinstance(kind, list) else kind:
        case "object":
            properties = schema.get("properties", {})
            return {name: minimal(properties.get(name, {"type": "string"})) for name in schema.get("required", ())}
        case "array":
            return [minimal(schema.get("items", {"type": "string"}))] * int(schema.get("minItems", 0))
        case "string":
            return "x" * int(schema.get("minLength", 0))
        case "integer" | "number":
            return schema.get("minimum", 0)
        case "boolean":
            return False
        case _:
            return None

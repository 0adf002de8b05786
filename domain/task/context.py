"""What a role is shown. One prefix for all roles, then history, then this task, strictly append-only:
request n+1 = request n + reply n + what is new. A role's instruction comes last and stays."""

import hashlib
from functools import cached_property
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from domain.ids import derived_id
from domain.messages import Message
from domain.model import Observations, RoleName, Transport
from domain.task.events import ContextBuilt, HistoryRef, Part, ReplyRef, Said, Segment
from domain.task.evolve import reply_message
from domain.task.state import Observation, Task

_BYTES_PER_TOKEN = 3.0
_PER_MESSAGE = 5
_LEAST = 60


class Prefix(Struct, frozen=True, dict=True):
    """What every request starts with, whatever the role: system prompt and tool list."""

    system: str
    tools: tuple[dict[str, Any], ...] = ()

    def encoded(self) -> bytes:
        return msgspec.json.encode(self, order="deterministic")

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.encoded()).hexdigest()

    @cached_property
    def tokens(self) -> int:
        return estimate(self.encoded().decode())


class Earlier(Struct, frozen=True):
    """An earlier task of the conversation, ready to stand before this one."""

    ref: HistoryRef
    messages: tuple[Message, ...]
    tokens: int


class ContextInputs(Struct, frozen=True):
    """What the world contributes: the transport that was chosen, the prefix, the role's instruction, and for the first
    context of a task the earlier tasks that fit (``history``) and those that did not (``left_out``)."""

    transport: Transport
    prefix: Prefix
    instruction: str
    history: tuple[Earlier, ...] = ()
    left_out: tuple[Earlier, ...] = ()
    observe_as: Observations = "user"
    send_reasoning: bool = False
    limit: int = 0
    """Tokens the request may have; observations are cut in the middle to stay below it. 0: not known."""


def estimate(text: str) -> int:
    """Tokens in a text, on the high side for English and about right for Russian and code."""
    return int(len(text.encode("utf-8", "replace")) / _BYTES_PER_TOKEN) + 1


def message_tokens(message: Message) -> int:
    calls = sum(estimate(call.name + call.arguments) for call in message.tool_calls)
    return estimate(message.content + message.reasoning) + calls + _PER_MESSAGE


def build_context(task: Task, role: RoleName, inputs: ContextInputs) -> ContextBuilt:
    """The next context of ``task`` for ``role``: its new suffix, manifest and chained hash."""
    first = task.history is None
    manifest: list[Segment] = []
    chain = task.context_sha256
    tokens = task.context_tokens
    if first:
        manifest.append(Segment("system", inputs.prefix.sha256[:12], inputs.prefix.tokens))
        for h in inputs.left_out:
            manifest.append(Segment("history", h.ref.task_id, h.tokens, False, "over the budget for earlier tasks"))
        for h in inputs.history:
            manifest.append(Segment("history", h.ref.task_id, h.tokens))
        chain = start_hash(inputs.prefix.sha256, [m for h in inputs.history for m in h.messages])
        tokens = inputs.prefix.tokens + sum(h.tokens for h in inputs.history)
    suffix: list[Part] = []
    if task.reply_pending and task.reply is not None:
        suffix.append(ReplyRef(task.reply.call_id))
        manifest.append(
            Segment("reply", task.reply.call_id, message_tokens(reply_message(task.reply, inputs.send_reasoning)))
        )
    instruction = inputs.instruction if role != task.role else ""
    room = inputs.limit - tokens - estimate(instruction) - sum(s.tokens for s in manifest if s.kind == "reply")
    if inputs.limit and not first:
        task = replace(task, pending=_fitted(task.pending, room))
    for message, segment in _new_messages(task, inputs, instruction, first):
        suffix.append(Said(message))
        manifest.append(segment)
    if instruction:
        manifest.append(Segment("instruction", role, estimate(instruction), True, "part of the message before it"))
    added = resolve(task, tuple(suffix), inputs.send_reasoning)
    return ContextBuilt(
        call_id=derived_id(task.task_id, "model", task.model_calls + 1),
        role=role,
        transport=inputs.transport,
        prefix_sha256=inputs.prefix.sha256,
        context_sha256=next_hash(chain, added),
        suffix=tuple(suffix),
        manifest=tuple(manifest),
        tokens=tokens + sum(map(message_tokens, added)),
        observe_as=inputs.observe_as,
        send_reasoning=inputs.send_reasoning,
        history=tuple(h.ref for h in inputs.history) if first else None,
    )


def resolve(task: Task, suffix: tuple[Part, ...], send_reasoning: bool) -> list[Message]:
    """The messages a suffix stands for."""
    out = []
    for part in suffix:
        if isinstance(part, Said):
            out.append(part.message)
        elif task.reply is not None:
            out.append(reply_message(task.reply, send_reasoning))
    return out


def transcript(task: Task) -> tuple[Message, ...]:
    """An earlier task as later ones of its conversation see it: as it was sent, the answer added, open ends closed."""
    messages = list(task.messages)
    if task.reply_pending and task.reply is not None:
        messages.append(reply_message(task.reply, task.send_reasoning))
    if messages and messages[-1].tool_calls:
        outcomes = {o.native_id: o.text for o in task.pending}
        calls = messages[-1].tool_calls
        messages += [Message("tool", outcomes.get(call.id, "not run"), tool_call_id=call.id) for call in calls]
    if messages and messages[-1].role != "assistant":
        messages.append(Message("assistant", f"(No answer: the task was {task.status}. {task.error})".strip()))
    return tuple(messages)


def plain_transcript(task: Task) -> tuple[Message, ...]:
    """An earlier task without its tool calls: every chat template takes this shape."""
    answer = task.response or f"(No answer: the task was {task.status}. {task.error})".strip()
    return Message("user", task.message), Message("assistant", answer)


def start_hash(prefix_sha256: str, history: list[Message]) -> str:
    return hashlib.sha256(prefix_sha256.encode() + msgspec.json.encode(history)).hexdigest()


def next_hash(previous: str, added: list[Message]) -> str:
    return hashlib.sha256(previous.encode() + msgspec.json.encode(added)).hexdigest()


def _fitted(pending: tuple[Observation, ...], room: int) -> tuple[Observation, ...]:
    """Observations cut to fit into ``room`` tokens, the longest first; what is left says that it was cut."""
    need = sum(estimate(o.text) + _PER_MESSAGE for o in pending)
    if need <= room or not pending:
        return pending
    share = max((room - _PER_MESSAGE * len(pending)) // len(pending), _LEAST)
    return tuple(o if estimate(o.text) <= share else replace(o, text=_cut(o.text, share)) for o in pending)


def _cut(text: str, tokens: int) -> str:
    half = max(int(tokens * _BYTES_PER_TOKEN) // 2 - 40, 40)
    raw = text.encode("utf-8", "replace")
    head, tail = raw[:half].decode("utf-8", "ignore"), raw[-half:].decode("utf-8", "ignore")
    return f"{head}\n[… {len(text) - len(head) - len(tail)} characters cut: the context is nearly full …]\n{tail}"


def _new_messages(task: Task, inputs: ContextInputs, instruction: str, first: bool) -> list[tuple[Message, Segment]]:
    """What the person or the tools said since the last request, the instruction in the last of them."""
    messages: list[Message] = []
    sources: list[str] = []
    loose: list[str] = []
    native = inputs.transport == "native_tools"
    if first:
        loose.append(task.message)
        sources.append("person")
    answered = set()
    for o in task.pending:
        if native and o.native_id:
            messages.append(Message("tool", o.text, tool_call_id=o.native_id))
            sources.append(o.source)
            answered.add(o.native_id)
        else:
            loose.append(o.text)
    if task.finish_id and native and task.finish_id not in answered:
        messages.append(Message("tool", "ok", tool_call_id=task.finish_id))
        sources.append("finish")
    tail = [*loose, instruction] if instruction else loose
    if tail or not messages:
        text = "\n\n".join(tail) or "Go on."
        if messages:
            # A message of its own would be a second `user` message in the task, which some templates answer by
            # rewriting what stands before it; the last tool message carries it instead.
            last = messages[-1]
            messages[-1] = Message("tool", f"{last.content}\n\n{text}", tool_call_id=last.tool_call_id)
        else:
            from_tools = not first and not native and bool(task.pending) and task.pending[-1].source != "person"
            messages.append(Message(inputs.observe_as if from_tools else "user", text))
            sources = sources or [o.source for o in task.pending[-1:]] or ["runtime"]
    kind: Any = "message" if first else "observation"
    return [(m, Segment(kind, s, message_tokens(m))) for m, s in zip(messages, sources, strict=False)]

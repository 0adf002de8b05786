"""llama-server's JSON shapes, a fake tokeniser and template, and the prefix cache of its slots.

The shapes were taken down from real replies (builds 10434 and 11549); ``tests/contract/test_model_dialect.py`` holds
the double and the real server to the same assertions.
"""

import asyncio
import json
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.doubles.llama_script import FINISH, Reply

_PIECES = re.compile(r"\w{1,6}|\s|[^\w\s]")
_SIMILAR_ENOUGH = 0.1  # llama-server's default --slot-prompt-similarity


def pieces(text: str) -> list[str]:
    """The text in fake tokens. White space stands alone, so that splitting never depends on what follows."""
    return _PIECES.findall(text)


def tokenise(text: str) -> list[int]:
    """Fake token ids, equal for equal pieces."""
    return [zlib.crc32(piece.encode()) % 100_000 for piece in pieces(text)]


def common_prefix(a: list[int], b: list[int]) -> int:
    """How many leading tokens are equal."""
    count = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        count += 1
    return count


def render(body: dict[str, Any], drops_reasoning: bool = False) -> str:
    """The prompt of a request, in ChatML with tools first. ``drops_reasoning`` imitates templates that forget the
    thoughts of turns before the last user message, which breaks the prefix."""
    messages = body["messages"]
    last_user = max((i for i, m in enumerate(messages) if m.get("role") == "user"), default=-1)
    out = "".join(f"<tools>{json.dumps(tool, sort_keys=True)}</tools>\n" for tool in body.get("tools") or ())
    for index, message in enumerate(messages):
        forgotten = drops_reasoning and index < last_user
        out += f"<|im_start|>{message.get('role', '')}\n{spoken(message, forgotten)}<|im_end|>\n"
    return out + "<|im_start|>assistant\n"


def spoken(message: dict[str, Any], without_reasoning: bool = False) -> str:
    """A message's text as the template renders it, and as the model would have written it."""
    reasoning = "" if without_reasoning else message.get("reasoning_content") or ""
    out = f"<think>\n{reasoning}\n</think>\n\n" if reasoning else ""
    content = message.get("content") or ""
    out += content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    for call in message.get("tool_calls") or ():
        function = call["function"]
        out += f'<tool_call>\n{{"name": "{function["name"]}", "arguments": {function["arguments"]}}}\n</tool_call>'
    return out


@dataclass
class Slot:
    """One slot: the tokens in its cache (prompt and reply of its last request)."""

    id: int
    tokens: list[int] = field(default_factory=list)
    busy: bool = False
    used: int = 0


class Slots:
    """The slots of a server. A request waits until one is free, and prefers the one that knows most of its prompt."""

    def __init__(self, count: int) -> None:
        self.all = [Slot(i) for i in range(count)]
        self.saved: dict[str, list[int]] = {}
        self._clock = 0

    async def acquire(self, prompt: list[int], wanted: int, gone: asyncio.Event) -> tuple[Slot, int] | None:
        """A slot and how many prompt tokens it has cached (at least one is always evaluated); None if ``gone``."""
        while not gone.is_set():
            free = [slot for slot in self.all if not slot.busy and wanted in (slot.id, -1)]
            if free:
                best = max(free, key=lambda slot: common_prefix(slot.tokens, prompt))
                if common_prefix(best.tokens, prompt) < _SIMILAR_ENOUGH * len(prompt):
                    best = min(free, key=lambda slot: slot.used)
                self._clock += 1
                best.busy, best.used = True, self._clock
                return best, min(common_prefix(best.tokens, prompt), len(prompt) - 1)
            await asyncio.sleep(0.005)
        return None


Call = tuple[str, str]


@dataclass(frozen=True)
class Said:
    """A reply as the model writes it: thoughts, then content, then calls ``(name, arguments as JSON text)``."""

    reasoning: str
    content: str
    calls: tuple[Call, ...]

    def message(self, new_id: Callable[[], str]) -> dict[str, Any]:
        """The ``message`` of a non-stream answer."""
        out: dict[str, Any] = {"role": "assistant", "content": self.content}
        if self.reasoning:
            out["reasoning_content"] = self.reasoning
        if self.calls:
            out["tool_calls"] = [
                {"type": "function", "function": {"name": name, "arguments": args}, "id": new_id()}
                for name, args in self.calls
            ]
        return out

    def deltas(self, new_id: Callable[[], str]) -> list[dict[str, Any]]:
        """One ``delta`` a fake token. The first delta of a call carries its id, name and first piece of arguments."""
        out: list[dict[str, Any]] = [{"reasoning_content": piece} for piece in pieces(self.reasoning)]
        out += [{"content": piece} for piece in pieces(self.content)]
        for index, (name, args) in enumerate(self.calls):
            first, *rest = pieces(args) or [""]
            function = {"name": name, "arguments": first}
            out.append({"tool_calls": [{"index": index, "id": new_id(), "type": "function", "function": function}]})
            out += [{"tool_calls": [{"index": index, "function": {"arguments": piece}}]} for piece in rest]
        return out

    def limited(self, tokens: int) -> "Said":
        """The same, cut after so many tokens; a call's name counts with its first piece."""
        reasoning, content = pieces(self.reasoning)[:tokens], pieces(self.content)
        left = tokens - len(reasoning)
        content, left = content[:left], left - len(content[:left])
        kept: list[Call] = []
        for name, args in self.calls:
            if left <= 0:
                break
            part = pieces(args)[:left]
            kept.append((name, "".join(part)))
            left -= max(1, len(part))
        return Said("".join(reasoning), "".join(content), tuple(kept))


def said(reply: Reply, native_tools: bool) -> Said:
    """A scripted reply in the transport that the request asks for."""
    if reply.directive is None:
        return Said(reply.reasoning, reply.content, tuple((name, _text(args)) for name, args in reply.calls))
    if not native_tools:
        return Said(reply.reasoning, _text(reply.directive), ())
    intent, finished = reply.directive.get("intent", ""), reply.directive.get("done", False)
    named = [(a["tool"], _text(a.get("arguments", {}))) for a in reply.directive.get("actions", ())]
    if finished:
        named.append((FINISH, _text({"intent": intent})))
    return Said(reply.reasoning, "" if finished else intent, tuple(named))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def timings(cached: int, prompt: int, predicted: int) -> dict[str, Any]:
    """The ``timings`` object (tokens, ms); one ms a prompt token and ten a reply token, so that tests can count."""
    evaluated = prompt - cached
    return {
        "cache_n": cached,
        "prompt_n": evaluated,
        "prompt_ms": float(evaluated),
        "prompt_per_token_ms": 1.0,
        "prompt_per_second": 1000.0,
        "predicted_n": predicted,
        "predicted_ms": predicted * 10.0,
        "predicted_per_token_ms": 10.0,
        "predicted_per_second": 100.0,
    }


def usage(cached: int, prompt: int, predicted: int) -> dict[str, Any]:
    """The ``usage`` object (tokens)."""
    return {
        "completion_tokens": predicted,
        "prompt_tokens": prompt,
        "total_tokens": prompt + predicted,
        "prompt_tokens_details": {"cached_tokens": cached},
    }

"""Builds a reply from the chunks of a stream, and tells the listener of each piece as it comes."""

import hashlib
import json
import time
from collections.abc import Callable
from typing import Any

from adapters.llm.failures import error_object, refusal
from adapters.llm.lenient import as_int, as_list, as_object, as_text, read_timings, read_usage
from adapters.llm.text import Cleaner, clean, short_model
from adapters.llm.thinking import ThinkSplitter, split_unopened
from domain.errors import ModelProtocolError, ModelRejected
from domain.messages import ToolCall
from domain.model import Delta, DeltaKind, ModelReply, ModelRequest

CHARACTERS_PER_TOKEN = 16
SLACK = 4096
"""A server that ignores ``max_tokens`` is stopped at this many characters a token, plus slack."""

BLANKS = 512
"""So much white space in a row is a small model caught in the gaps of a JSON grammar, which allow any amount of it."""

_LENGTH, _TOOLS, _STOP = "length", "tool_calls", "stop"


class _PartialCall:
    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []
        self.cleaner = Cleaner()


class ReplyBuilder:
    """``take`` each event's data, then ask for the ``reply``.

    ``begun`` says that a token came (progress is none), ``full`` that no more should be read."""

    def __init__(self, request: ModelRequest, on_delta: Callable[[Delta], None], url: str, secret: str = "") -> None:
        self._request = request
        self._tell = on_delta
        self._url = url
        self._secret = secret
        self._started = time.perf_counter()
        self._first_token = 0.0
        self._texts: dict[str, list[str]] = {"reasoning": [], "content": []}
        self._cleaners = {"reasoning": Cleaner(), "content": Cleaner()}
        self._splitter = ThinkSplitter()
        self._calls: list[_PartialCall] = []
        self._by_index: dict[int, _PartialCall] = {}
        self._left = CHARACTERS_PER_TOKEN * request.max_output_tokens + SLACK
        self._blanks = 0
        self._finish = ""
        self._usage: dict[str, Any] = {}
        self._timings: dict[str, Any] = {}
        self._model = ""
        self._done = False
        self.begun = False

    @property
    def full(self) -> bool:
        return self._done or self._left <= 0

    def take(self, data: str) -> None:
        """One event. Raises ``ModelError`` for one that is broken or that reports an error."""
        if data.strip() == "[DONE]":
            self._done = True
            return
        chunk = _decoded(data, self._url)
        if chunk.get("error"):
            error = error_object(chunk)
            raise refusal(as_int(error.get("code")) or 500, error, self._url, self._request.schema_name, self._secret)
        self._left -= 1  # also an endless stream of empty pieces comes to an end
        self._model = clean(as_text(chunk.get("model"))) or self._model
        self._usage = as_object(chunk.get("usage")) or self._usage
        self._timings = as_object(chunk.get("timings")) or self._timings
        progress = as_object(chunk.get("prompt_progress"))
        if progress:
            total, cached, processed = (as_int(progress.get(key)) for key in ("total", "cache", "processed"))
            self._tell(Delta("progress", total=total, cached=cached, processed=processed))
        for choice in as_list(chunk.get("choices")):
            if isinstance(choice, dict) and not choice.get("index"):
                self._choice(choice)

    def reply(self, needs_done: bool) -> ModelReply:
        """The complete answer. Raises ``ModelProtocolError`` when the stream ended before its end marks:
        a finish reason, and ``[DONE]`` where ``needs_done`` (llama-server always sends one)."""
        cut = self._left <= 0
        if not cut and (not self._finish or (needs_done and not self._done)):
            raise ModelProtocolError(
                f"The stream from {self._url} ended before the answer was complete. What came was dropped; try again."
            )
        for channel, cleaner in self._cleaners.items():
            self._say(channel, cleaner.finish())
        for kind, text in self._splitter.finish():
            self._emit(kind, text)
        reasoning, content = "".join(self._texts["reasoning"]), "".join(self._texts["content"])
        if not reasoning:
            reasoning, content = split_unopened(content)
        return ModelReply(
            content=content,
            reasoning=reasoning,
            tool_calls=tuple(self._call(index, call) for index, call in enumerate(self._calls)),
            finish_reason=_LENGTH if cut else self._finish_reason(),
            model=short_model(self._model),
            usage=read_usage(self._usage, self._timings),
            timings=read_timings(self._timings),
            latency_ms=self._elapsed(),
            first_token_ms=self._first_token,
        )

    def _choice(self, choice: dict[str, Any]) -> None:
        # A server that does not stream sends one whole message in the place of deltas.
        delta = as_object(choice.get("delta")) or as_object(choice.get("message"))
        self._put("reasoning", as_text(delta.get("reasoning_content")) or as_text(delta.get("reasoning")))
        self._put("content", as_text(delta.get("content")))
        for index, piece in enumerate(as_list(delta.get("tool_calls"))):
            if isinstance(piece, dict):
                self._tool_call({"index": index, **piece} if "message" in choice else piece)
        self._finish = as_text(choice.get("finish_reason")) or self._finish

    def _put(self, channel: str, piece: str) -> None:
        if not piece:
            return
        self._left -= len(piece)
        if channel == "content" and self._request.transport != "text":
            self._blanks = self._blanks + len(piece) if piece.isspace() else len(piece) - len(piece.rstrip())
            if self._blanks > BLANKS:
                self._left = 0
        self._say(channel, self._cleaners[channel].feed(piece))

    def _say(self, channel: str, text: str) -> None:
        if channel == "reasoning":
            self._emit("reasoning", text)
        else:
            for kind, part in self._splitter.feed(text):
                self._emit(kind, part)

    def _tool_call(self, piece: dict[str, Any]) -> None:
        function = as_object(piece.get("function"))
        name, arguments = clean(as_text(function.get("name"))), function.get("arguments")
        call = self._open_call(piece.get("index"), clean(as_text(piece.get("id"))), name)
        if name and not call.name:
            call.name = name
            self._emit("tool_call", name)
        # some servers send the object itself instead of its text
        raw = json.dumps(arguments, ensure_ascii=False) if isinstance(arguments, dict) else as_text(arguments)
        self._left -= len(raw)
        text = call.cleaner.feed(raw)
        call.arguments.append(text)
        self._emit("tool_call", text)

    def _open_call(self, index: Any, call_id: str, name: str) -> _PartialCall:
        """The call that a piece belongs to. Some servers give no index, others the same one to every call: there a new
        id, or a new name after arguments, begins a new call."""
        last = self._calls[-1] if self._calls else None
        call = self._by_index.get(index) if isinstance(index, int) else last
        other_id = call is not None and call_id and call.id and call_id != call.id
        new_name = call is not None and not isinstance(index, int) and name and not call_id and call.arguments
        if call is None or other_id or new_name:
            call = _PartialCall()
            self._calls.append(call)
            if isinstance(index, int):
                self._by_index[index] = call
        call.id = call.id or call_id
        return call

    def _emit(self, kind: DeltaKind, text: str) -> None:
        if not text:
            return
        if not self.begun:
            self.begun = True
            self._first_token = self._elapsed()
        if kind in self._texts:
            self._texts[kind].append(text)
        self._tell(Delta(kind, text))

    def _call(self, index: int, call: _PartialCall) -> ToolCall:
        """Ids must be there and unique in a conversation; a missing one is derived from ours."""
        made = hashlib.sha256(f"{self._request.call_id}/{index}".encode()).hexdigest()[:24]
        return ToolCall(call.id or made, call.name, "".join(call.arguments) + call.cleaner.finish())

    def _finish_reason(self) -> str:
        if self._finish == "content_filter":
            raise ModelRejected(f"A content filter of {self._url} stopped the answer; nothing was kept.")
        if self._finish in ("length", "max_tokens"):
            return _LENGTH
        return _TOOLS if self._calls else _STOP

    def _elapsed(self) -> float:
        return (time.perf_counter() - self._started) * 1000.0


def _decoded(data: str, url: str) -> dict[str, Any]:
    try:
        # json and not msgspec: half a surrogate pair is legal in a chunk when the other half comes in the next
        chunk = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ModelProtocolError(f"{url} sent a chunk that is not JSON ({error}): {data[:200]!r}") from error
    if not isinstance(chunk, dict):
        raise ModelProtocolError(f"{url} sent a chunk that is no object: {data[:200]!r}")
    return chunk

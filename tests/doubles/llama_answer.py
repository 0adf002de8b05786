"""The run of one scripted chat reply: chunks or a whole body, as llama-server sends them, and the fault on the way."""

import json
import time
from collections.abc import Callable
from typing import Any

from tests.doubles.llama_dialect import said, timings, usage
from tests.doubles.llama_exchange import Exchange
from tests.doubles.llama_script import Reply


class ServerGone(Exception):
    """Ends a request without ending its answer, so that uvicorn breaks the connection."""


class Answer:
    """The run of one chat reply, streamed or whole."""

    def __init__(self, x: Exchange, reply: Reply, model: str, native_tools: bool, new_id: Callable[[], str]) -> None:
        self.x, self.reply, self.new_id = x, reply, new_id
        body = self.body = x.request.body
        limit = body.get("max_tokens", body.get("max_completion_tokens"))
        whole = said(reply, native_tools and bool(body.get("tools")))
        # max_tokens 0 still yields one token (seen on build 11549); negative means no limit
        self.said = whole if limit is None or limit < 0 else whole.limited(max(1, limit))
        self.finish = reply.finish_reason or ("tool_calls" if self.said.calls else "stop")
        if self.said != whole:
            self.finish = "length"
        self.stream = bool(body.get("stream"))
        self.head = {"created": int(time.time()), "id": "chatcmpl-" + new_id(), "model": model}
        self.started = False

    async def run(self) -> None:
        """Sends the reply with its fault. Returns early when the client leaves."""
        deltas = self.said.deltas(self.new_id)
        if self.reply.fault == "endless":
            await self._endless(deltas)
            return
        for count, delta in enumerate(deltas):
            if self.reply.fault and count == self.reply.after and not await self._strike():
                return
            if not await self.x.pause(self.reply.token_delay):
                return
            await self._delta(delta)
        if self.reply.fault and self.reply.after >= len(deltas) and not await self._strike():
            return
        await self._end()

    async def _endless(self, deltas: list[dict[str, Any]]) -> None:
        while True:
            for delta in deltas:
                if not await self.x.pause(self.reply.token_delay):
                    return
                await self._delta(delta)

    async def _strike(self) -> bool:
        """Lets the fault happen; whether the answer goes on after it."""
        match self.reply.fault:
            case "hang":
                return await self._hang()
            case "garbage" if self.stream:
                await self._begin()
                await self.x.body(b'data: {"choices":[{"finish_reason":null,"index":0,"del\n\n', more=True)
                return True
            case "garbage":
                await self.x.text('{"choices":[{"finish_re')
                return False
            case "error" if self.stream:
                await self._chunk(None, self.reply.body)
                await self.x.body(b"")
                return False
            case "error":
                await self.x.json(self.reply.body, 500)
                return False
            case "cut" if self.stream:
                await self._begin()
                await self.x.body(b"")
                return False
        if not self.stream:  # a body shorter than announced
            await self.x.start(200, "application/json; charset=utf-8", 1000)
            await self.x.body(b'{"choices":[', more=True)
        elif self.reply.after:
            await self._begin()
        raise ServerGone

    async def _hang(self) -> bool:
        left, step = self.reply.seconds, self.reply.ping or self.reply.seconds
        while left > 1e-6:
            if not await self.x.pause(min(step, left)):
                return False
            left -= step
            if self.reply.ping and self.stream:
                await self._begin()
                await self.x.body(b":\n\n", more=True)
        return True

    async def _begin(self) -> None:
        """Headers go out with the first byte of the stream, not before."""
        if not self.started:
            self.started = True
            await self.x.start(200, "text/event-stream")

    async def _chunk(self, delta: dict[str, Any] | None, more: dict[str, Any], finish: str | None = None) -> None:
        await self._begin()
        choices = [] if delta is None else [{"finish_reason": finish, "index": 0, "delta": delta}]
        chunk = {"choices": choices, **self.head, "object": "chat.completion.chunk", **more}
        if "error" in more:
            chunk = more
        text = json.dumps(chunk, ensure_ascii=False, separators=(",", ":"))
        await self.x.body(f"data: {text}\n\n".encode(), more=True)

    async def _delta(self, delta: dict[str, Any]) -> None:
        request = self.x.request
        if request.tokens_sent == 0 and self.stream:
            await self._prefill()
        request.tokens_sent += 1
        if self.stream:
            timed = {"timings": self._timings()} if self.body.get("timings_per_token") else {}
            await self._chunk(delta, timed)

    async def _prefill(self) -> None:
        """Progress chunks where they are wanted, then the chunk that opens the message."""
        opening = {"role": "assistant", "content": None}
        total, cached = self.x.request.prompt_tokens, self.x.request.cached_tokens
        if self.body.get("return_progress"):
            for done in sorted({cached, (cached + total) // 2, total}):
                progress = {"total": total, "cache": cached, "processed": done, "time_ms": done - cached}
                await self._chunk(opening, {"prompt_progress": progress})
        await self._chunk(opening, {})

    async def _end(self) -> None:
        request = self.x.request
        counts = (request.cached_tokens, request.prompt_tokens, request.tokens_sent)
        if not self.stream:
            choice = {"finish_reason": self.finish, "index": 0, "message": self.said.message(self.new_id)}
            body = {"choices": [choice], **self.head, "object": "chat.completion", "usage": usage(*counts)}
            await self.x.json({**body, "timings": self._timings()})
            return
        if request.tokens_sent == 0:
            await self._prefill()
        # timings ride in the last chunk: the usage chunk where there is one, else the finish chunk
        with_usage = bool((self.body.get("stream_options") or {}).get("include_usage"))
        await self._chunk({}, {} if with_usage else {"timings": self._timings()}, self.finish)
        if with_usage:
            await self._chunk(None, {"usage": usage(*counts), "timings": self._timings()})
        await self.x.body(b"data: [DONE]\n\n")

    def _timings(self) -> dict[str, Any]:
        request = self.x.request
        return timings(request.cached_tokens, request.prompt_tokens, request.tokens_sent)

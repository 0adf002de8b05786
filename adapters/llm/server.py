"""One model behind one address: what is known of it, and the requests it takes."""

import time
from collections.abc import Callable
from typing import Any

from adapters.llm.dialect import LLAMA_ONLY, Dialect, narrower, request_body, wire_messages
from adapters.llm.lenient import as_int, as_list, as_text
from adapters.llm.link import HttpRefusal, Link
from adapters.llm.patience import Patience
from adapters.llm.props import Props, read_props
from adapters.llm.reply import ReplyBuilder
from adapters.llm.sse import SseDecoder
from adapters.llm.text import short_model
from domain.errors import ModelLoading, ModelRejected, ModelUnavailable
from domain.messages import Message
from domain.model import Delta, ModelReply, ModelRequest

_CHAT = "/v1/chat/completions"
_MAX_ADAPTIONS = 6
"""How many refused fields are dropped in one call before the refusal is believed."""
_MISSING = (404, 405, 501)


class ModelServer:
    """``model`` is the configured name, "" for whatever the server runs. ``props_ttl`` in seconds."""

    def __init__(self, link: Link, model: str, idle: float, prefill: float, props_ttl: float) -> None:
        self.link = link
        self.model = model
        self._idle = idle
        self._prefill = prefill
        self._props_ttl = props_ttl
        self._props: Props | None = None
        self._read_at = 0.0
        self._dialect: Dialect | None = None
        self._counts_itself = True

    async def props(self) -> Props:
        """Properties, at most ``props_ttl`` seconds old. Raises ``ModelError``."""
        if self._props is None or time.monotonic() - self._read_at > self._props_ttl:
            try:
                self._props = await read_props(self.link, self.model)
            except (ModelUnavailable, ModelLoading):
                self._forget()
                raise
            self._read_at = time.monotonic()
        return self._props

    async def complete(self, request: ModelRequest, on_delta: Callable[[Delta], None]) -> ModelReply:
        """One streamed completion, tried once (and again without fields that the server refuses).

        Raises ``ModelError``."""
        dialect = await self._spoken()
        for _ in range(_MAX_ADAPTIONS):
            builder = ReplyBuilder(request, on_delta, self.link.shown, self.link.api_key)
            try:
                return await self._stream(request, dialect, builder)
            except HttpRefusal as refused:
                adapted = narrower(dialect, refused.status, as_text(refused.error.get("message")))
                if adapted is None:
                    raise self.link.failure(refused, request.schema_name) from None
                self._dialect = dialect = adapted
            except ModelUnavailable:
                self._forget()  # another server may come up at this address
                raise
        raise ModelRejected(f"{self.link.shown} refuses one field of the request after another.")

    async def rendered(self, messages: tuple[Message, ...], tools: tuple[dict[str, Any], ...]) -> str | None:
        """The prompt that the chat template makes of the messages; None where the server cannot show it.
        Raises ``HttpRefusal`` when the template does not take them, else ``ModelError``."""
        try:
            body = await self.link.post("/apply-template", self._conversation(messages, tools))
        except HttpRefusal as refused:
            if refused.status in _MISSING:
                return None
            raise
        return as_text(body.get("prompt"))

    async def count(self, messages: tuple[Message, ...], tools: tuple[dict[str, Any], ...]) -> int | None:
        """Exact prompt tokens, None where the server cannot count. Raises ``ModelError``."""
        if not (await self.props()).llama:
            return None
        try:
            if self._counts_itself:
                try:
                    counted = await self.link.post(f"{_CHAT}/input_tokens", self._conversation(messages, tools))
                    return as_int(counted.get("input_tokens"))
                except HttpRefusal as refused:
                    if refused.status not in _MISSING:
                        raise
                    self._counts_itself = False
            return await self._tokenized(messages, tools)
        except HttpRefusal as refused:
            raise self.link.failure(refused) from None

    async def _tokenized(self, messages: tuple[Message, ...], tools: tuple[dict[str, Any], ...]) -> int | None:
        prompt = await self.rendered(messages, tools)
        if prompt is None:
            return None
        body = {"content": prompt, "add_special": True, "parse_special": True, **self._named()}
        try:
            return len(as_list((await self.link.post("/tokenize", body)).get("tokens")))
        except HttpRefusal as refused:
            if refused.status in _MISSING:
                return None
            raise

    async def _stream(self, request: ModelRequest, dialect: Dialect, builder: ReplyBuilder) -> ModelReply:
        patience = Patience(self._idle, self._prefill, self._alive, self.link.shown)
        model = self.model or (self._props.info.model if self._props and not self._props.llama else "")
        decoder = SseDecoder()
        async with self.link.stream(_CHAT, request_body(request, dialect, model), patience) as chunks:
            async for chunk in chunks:
                for data in decoder.feed(chunk):
                    builder.take(data)
                patience.generating = builder.begun
                if builder.full:
                    break
        for data in () if builder.full else decoder.finish():
            builder.take(data)
        reply = builder.reply(needs_done=dialect.llama)
        self._notice(reply.model)
        return reply

    async def _spoken(self) -> Dialect:
        if self._dialect is None:
            props = await self.props()
            dropped = frozenset() if props.llama else LLAMA_ONLY
            self._dialect = Dialect(props.llama, props.parallel_calls, dropped)
        return self._dialect

    async def _alive(self) -> bool:
        """Only llama-server is sure to answer while it works; others get the benefit of the doubt."""
        return not (self._dialect and self._dialect.llama) or await self.link.alive()

    def _notice(self, answered: str) -> None:
        """Another model than before answered: what is known of the server is stale."""
        if self._props and self._props.llama and answered not in ("", self._props.info.model, short_model(self.model)):
            self._forget()

    def _forget(self) -> None:
        self._props = None
        self._dialect = None
        self._counts_itself = True

    def _conversation(self, messages: tuple[Message, ...], tools: tuple[dict[str, Any], ...]) -> dict[str, Any]:
        body: dict[str, Any] = {"messages": wire_messages(messages), **self._named()}
        return {**body, "tools": list(tools)} if tools else body

    def _named(self) -> dict[str, str]:
        return {"model": self.model} if self.model else {}

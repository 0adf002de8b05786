"""The ASGI application of the scripted llama-server: endpoints, refusals, slots, and the record of requests."""

import asyncio
import json
import time
from collections.abc import MutableMapping
from typing import Any

from tests.doubles.llama_answer import Answer
from tests.doubles.llama_dialect import Slots, render, spoken, tokenise
from tests.doubles.llama_exchange import Exchange, Receive, Send
from tests.doubles.llama_script import Request, Script, loading, overflow, reply_from_json

CHAT = "/v1/chat/completions"
TOOL_CAPS = ("supports_tools", "supports_tool_calls", "supports_parallel_tool_calls", "supports_object_arguments")


class LlamaApp:
    """Public attributes are the server's properties; change them at any time, as if another model had been loaded."""

    def __init__(
        self,
        n_ctx: int = 16384,
        slots: int = 2,
        model: str = "scripted.gguf",
        chat_template: str = "{# scripted ChatML #}",
        native_tools: bool = True,
        drops_reasoning: bool = False,
        counts_input_tokens: bool = True,
        api_key: str = "",
        loading: bool = False,
    ) -> None:
        self.n_ctx, self.model, self.chat_template = n_ctx, model, chat_template
        self.native_tools, self.drops_reasoning = native_tools, drops_reasoning
        self.counts_input_tokens, self.api_key, self.loading = counts_input_tokens, api_key, loading
        self.slots = Slots(slots)
        self.script = Script()
        self.calls: list[Request] = []
        self.closing = asyncio.Event()
        self._ids = 0

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """One HTTP request."""
        headers = {k.decode().lower(): v.decode() for k, v in scope["headers"]}
        raw = b""
        while True:
            message = await receive()
            raw += message.get("body", b"")
            if not message.get("more_body"):
                break
        request = Request(scope["method"], scope["path"], headers, None, time.time())
        exchange = Exchange(request, receive, send, self.closing)
        if request.path.startswith("/__script/"):
            await self._control(exchange, raw)
            return
        self.calls.append(request)
        try:
            await self._route(exchange, raw, scope.get("query_string", b"").decode())
            request.finished = not exchange.gone.is_set()
        finally:
            request.disconnected = exchange.gone.is_set() and not self.closing.is_set()
            exchange.close()

    async def _route(self, x: Exchange, raw: bytes, query: str) -> None:
        path = x.request.path
        if self.api_key and path != "/health" and x.request.headers.get("authorization") != f"Bearer {self.api_key}":
            await x.json(_error(401, "Invalid API Key", "authentication_error"), 401)
            return
        if self.loading:
            await x.json(loading().body, 503)
            return
        if x.request.method == "POST" and raw:
            try:
                x.request.body = json.loads(raw)
            except ValueError:
                text = "[json.exception.parse_error.101] parse error at line 1, column 1: syntax error"
                await x.json(_error(400, text, "invalid_request_error"), 400)
                return
        answer = self._plain(path, x.request.body)
        if answer is not None:
            await x.json(answer)
        elif path.startswith("/slots/") and x.request.method == "POST":
            await self._slot_action(x, int(path.rsplit("/", 1)[1]), query)
        elif path in (CHAT, "/apply-template", CHAT + "/input_tokens") and x.request.method == "POST":
            await self._templated(x, path)
        else:
            await x.json(_error(404, "File Not Found", "not_found_error"), 404)

    def _plain(self, path: str, body: Any) -> Any:
        """Answers that need no template and no slot; None where there is no such endpoint."""
        match path:
            case "/health":
                return {"status": "ok"}
            case "/props":
                return self._props()
            case "/v1/models" | "/models":
                return {
                    "object": "list",
                    "data": [
                        {"id": self.model, "object": "model", "owned_by": "llamacpp", "meta": {"n_ctx": self.n_ctx}}
                    ],
                }
            case "/slots":
                return [{"id": s.id, "n_ctx": self.n_ctx, "is_processing": s.busy} for s in self.slots.all]
            case "/tokenize":
                return {"tokens": tokenise(str((body or {}).get("content", "")))}
        return None

    def _props(self) -> dict[str, Any]:
        caps = dict.fromkeys(TOOL_CAPS, self.native_tools)
        caps |= {"supports_preserve_reasoning": False, "supports_system_role": True, "supports_string_content": True}
        return {
            "default_generation_settings": {"params": {}, "n_ctx": self.n_ctx},
            "total_slots": len(self.slots.all),
            "model_alias": self.model,
            "model_path": self.model,
            "modalities": {"vision": False, "audio": False},
            "endpoint_slots": True,
            "endpoint_props": False,
            "endpoint_metrics": False,
            "chat_template": self.chat_template,
            "chat_template_caps": caps,
            "bos_token": "",
            "eos_token": "<|im_end|>",
            "build_info": "b0-scripted",
            "is_sleeping": False,
        }

    async def _slot_action(self, x: Exchange, slot_id: int, query: str) -> None:
        slot, action = self.slots.all[slot_id], query.removeprefix("action=")
        name = str((x.request.body or {}).get("filename", ""))
        if action != "erase" and ("/" in name or not name):
            await x.json(_error(400, "Invalid filename", "invalid_request_error"), 400)
            return
        if action == "save":
            self.slots.saved[name] = list(slot.tokens)
        else:
            slot.tokens = list(self.slots.saved.get(name, ())) if action == "restore" else []
        await x.json({"id_slot": slot_id, "filename": name, "n_tokens": len(slot.tokens)})

    async def _templated(self, x: Exchange, path: str) -> None:
        body = x.request.body
        if not isinstance(body, dict) or "messages" not in body:
            await x.json(_error(400, "'messages' is required", "invalid_request_error"), 400)
        elif not isinstance(body["messages"], list):
            await x.json(_error(400, "Expected 'messages' to be an array", "invalid_request_error"), 400)
        elif path == "/apply-template":
            await x.json({"prompt": self._prompt(body)})
        elif path == CHAT:
            await self._chat(x, body)
        elif self.counts_input_tokens:
            await x.json({"input_tokens": len(tokenise(self._prompt(body))), "object": "response.input_tokens"})
        else:
            await x.json(_error(404, "File Not Found", "not_found_error"), 404)

    def _prompt(self, body: dict[str, Any]) -> str:
        shown = body if self.native_tools else {**body, "tools": None}
        return render(shown, self.drops_reasoning)

    async def _chat(self, x: Exchange, body: dict[str, Any]) -> None:
        request = x.request
        request.role = str((body.get("metadata") or {}).get("role", ""))
        reply = request.reply = self.script.pick(request)
        if reply.fault == "status":
            await (
                x.text(reply.body, reply.status) if isinstance(reply.body, str) else x.json(reply.body, reply.status)
            )
            return
        prompt = tokenise(self._prompt(body))
        request.prompt_tokens = len(prompt)
        if len(prompt) >= self.n_ctx:
            refusal = overflow(len(prompt), self.n_ctx)
            await x.json(refusal.body, refusal.status)
            return
        taken = await self.slots.acquire(prompt, self._slot_id(body), x.gone)
        if taken is None:
            return
        slot, request.cached_tokens = taken
        answer = Answer(x, reply, self.model, self.native_tools, self.new_id)
        try:
            await answer.run()
        finally:
            slot.tokens = prompt + tokenise(spoken(answer.said.limited(request.tokens_sent).message(self.new_id)))
            slot.busy = False

    def _slot_id(self, body: dict[str, Any]) -> int:
        """An ``id_slot`` that does not exist is silently ignored, as the real server does."""
        wanted = int(body.get("id_slot", -1))
        return wanted if 0 <= wanted < len(self.slots.all) else -1

    def new_id(self) -> str:
        """A fresh id of a call or completion."""
        self._ids += 1
        return f"scripted{self._ids:024d}"

    async def _control(self, x: Exchange, raw: bytes) -> None:
        """``GET /__script/requests`` and ``POST /__script/push``: for tests that run the double as a process."""
        if x.request.path.endswith("/push"):
            entry = json.loads(raw)
            self.script.push(entry.get("role", "*"), reply_from_json(entry))
            await x.json({"remaining": self.script.remaining()})
        else:
            hidden = ("reply", "headers")
            await x.json([{k: v for k, v in vars(call).items() if k not in hidden} for call in self.calls])
        x.close()


def _error(code: int, message: str, kind: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "type": kind}}

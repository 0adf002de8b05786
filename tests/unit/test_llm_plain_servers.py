"""OpenAI-compatible servers that are no llama-server: fewer fields, other habits."""

import json
from typing import Any

import httpx
import pytest

from adapters.llm import HttpModelClient, RetryPolicy
from domain.errors import ModelRejected, NotFound
from domain.messages import Message
from domain.model import Delta, ModelRequest, ServerInfo
from domain.roles import RoleConfig

pytestmark = pytest.mark.asyncio
ASKED = ModelRequest("thinker", "t", "c", (Message("user", "hi"),))


class Plain:
    """Answers "hello" without ``[DONE]``; refuses the fields in ``refuses`` one at a time."""

    def __init__(self, *refuses: str, models: Any = None, key: str = "") -> None:
        self.refuses = refuses
        self.models = models
        self.key = key
        self.bodies: list[dict[str, Any]] = []
        self.paths: list[str] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.paths.append(request.url.path)
        if self.key and request.headers.get("authorization") != f"Bearer {self.key}":
            return httpx.Response(401, json={"error": {"message": "Incorrect API key provided"}})
        if request.url.path == "/v1/models" and self.models is not None:
            return httpx.Response(200, json=self.models)
        if request.url.path != "/v1/chat/completions":
            return httpx.Response(404, json={"detail": "Not Found"})
        body = json.loads(request.content)
        self.bodies.append(body)
        for field in self.refuses:
            if field in body:
                return httpx.Response(400, json={"error": {"message": f"Unrecognized request argument: {field}"}})
        chunks: list[dict[str, Any]] = [
            {"choices": [{"index": 0, "delta": {"content": "hello"}}], "model": "gpt-x-2026"},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        ]
        return httpx.Response(200, text="".join(f"data: {json.dumps(c)}\n\n" for c in chunks))


def _client(server: Plain, model: str = "", key: str = "") -> HttpModelClient:
    roles = {"thinker": RoleConfig("thinker", "http://plain", "think", model, key)}
    retries = RetryPolicy(base=0.0)
    return HttpModelClient(roles, transport=httpx.MockTransport(server), retries=retries)  # type: ignore[arg-type]


def _ignore(_delta: Delta) -> None:
    pass


async def test_llama_fields_are_not_sent_and_done_is_not_needed() -> None:
    server = Plain(models={"data": [{"id": "gpt-x", "max_model_len": 32768}]})
    async with _client(server) as client:
        reply = await client.chat(ASKED, _ignore)
        assert await client.info("thinker") == ServerInfo("http://plain", "gpt-x", 32768)
    assert (reply.content, reply.model) == ("hello", "gpt-x-2026")
    assert not {"return_progress", "cache_prompt"} & set(server.bodies[0])
    assert server.bodies[0]["model"] == "gpt-x"
    assert server.bodies[0]["metadata"]["role"] == "thinker"


async def test_refused_fields_are_dropped_and_that_is_remembered() -> None:
    server = Plain("metadata", "stream_options")
    async with _client(server) as client:
        await client.chat(ASKED, _ignore)
        await client.chat(ASKED, _ignore)
    assert len(server.bodies) == 4
    assert not {"metadata", "stream_options"} & set(server.bodies[-1])


async def test_a_needed_field_that_is_refused_is_an_error() -> None:
    async with _client(Plain("messages")) as client:
        with pytest.raises(ModelRejected, match="messages"):
            await client.chat(ASKED, _ignore)


async def test_no_template_to_check_and_no_tokenizer() -> None:
    async with _client(Plain()) as client:
        assert await client.transport("thinker") == "json_schema"
        assert await client.count_tokens("thinker", ASKED.messages) is None


async def test_the_configured_model_is_found_in_the_list_and_sent() -> None:
    listed = {"data": [{"id": "a", "context_length": 1}, {"id": "b", "meta": {"n_ctx": 4096}}]}
    server = Plain(models=listed, key="k")
    async with _client(server, "b", "k") as client:
        assert await client.info("thinker") == ServerInfo("http://plain", "b", 4096)
        await client.chat(ASKED, _ignore)
    assert server.bodies[0]["model"] == "b"


async def test_a_wrong_key_is_a_refusal_everywhere() -> None:
    async with _client(Plain(key="right"), key="wrong") as client:
        for call in (client.info("thinker"), client.transport("thinker"), client.chat(ASKED, _ignore)):
            with pytest.raises(ModelRejected, match="api_key"):
                await call
        ping = await client.ping("thinker")
    assert (ping.ok, ping.latency_ms) == (False, 0.0)
    assert "wrong" not in ping.error


@pytest.mark.parametrize("models", [None, {}, {"data": None}, {"data": ["x", {"id": 7}]}, []])
async def test_any_model_list_is_survived(models: Any) -> None:
    async with _client(Plain(models=models)) as client:
        assert await client.info("thinker") == ServerInfo("http://plain")


async def test_an_unknown_role_is_named() -> None:
    async with _client(Plain()) as client:
        with pytest.raises(NotFound, match="'coder'"):
            await client.info("coder")


async def test_an_address_that_is_none() -> None:
    async with HttpModelClient({"thinker": RoleConfig("thinker", "not a url", "x")}) as client:
        with pytest.raises(ModelRejected, match="no usable address"):
            await client.info("thinker")


async def test_a_server_that_does_not_stream_is_understood() -> None:
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": "list_dir", "arguments": f'{{"path": "{n}"}}'}}
        for n in range(2)
    ]
    message = {"role": "assistant", "content": "всё\nсразу", "reasoning_content": "hm", "tool_calls": calls}
    whole = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": {"prompt_tokens": 5}}

    def server(request: httpx.Request) -> httpx.Response:
        if request.url.path != "/v1/chat/completions":
            return httpx.Response(404, json={})
        return httpx.Response(200, text=json.dumps(whole, indent=2), headers={"content-type": "application/json"})

    async with _client(server) as client:  # type: ignore[arg-type]
        reply = await client.chat(ASKED, _ignore)
    assert (reply.content, reply.reasoning, reply.usage.prompt_tokens) == ("всё\nсразу", "hm", 5)
    assert [(c.id, c.arguments) for c in reply.tool_calls] == [("c0", '{"path": "0"}'), ("c1", '{"path": "1"}')]

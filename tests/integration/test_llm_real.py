"""The real client against the real llama.cpp with the small model, which answers nonsense, but in the true dialect."""

import asyncio
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from adapters.engine.managed import ManagedEngine
from adapters.llm import SCHEMA_NAMES, HttpModelClient, RetryPolicy, response_schema
from domain.directive import native_tools
from domain.errors import ContextOverflow, ModelRejected, ModelTimeout
from domain.messages import Message, ToolCall
from domain.model import Delta, ModelRequest, RoleName
from domain.roles import ROLE_NAMES, RoleConfig
from tests.doubles.llama_script import minimal
from tests.doubles.real_llama import RealLlama

pytestmark = pytest.mark.llama
TEMPLATE = Path(__file__).parents[1] / "contract" / "tools_template.jinja"
PERSON = Message("user", "Привет! Что в папке docs?")


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealLlama]:
    with RealLlama(tmp_path_factory.mktemp("home"), extra_args=("--chat-template-file", str(TEMPLATE))) as real:
        yield real


def client_of(llama: RealLlama, idle: float = 60.0) -> HttpModelClient:
    roles: dict[RoleName, RoleConfig] = {
        name: RoleConfig(name, llama.url, "x", api_key=llama.api_key) for name in ROLE_NAMES
    }
    return HttpModelClient(roles, idle_timeout=idle, retries=RetryPolicy(attempts=1))


def _ignore(_delta: Delta) -> None:
    pass


def asked(*messages: Message, limit: int = 6, **more: Any) -> ModelRequest:
    return ModelRequest("action", "t", "c", messages or (PERSON,), temperature=0.0, max_output_tokens=limit, **more)


async def test_properties_tokens_and_ping(llama: RealLlama) -> None:
    async with client_of(llama) as client:
        info = await client.info("action")
        assert (info.context_tokens, info.slots, info.native_tools) == (2048, 2, True)
        deltas: list[Delta] = []
        reply = await client.chat(asked(tools=native_tools()), deltas.append)
        counted = await client.count_tokens("action", (PERSON,), native_tools())
        assert counted == reply.usage.prompt_tokens == reply.timings.cache_n + reply.timings.prompt_n
        assert reply.finish_reason == "length"
        assert reply.model == info.model
        assert [d for d in deltas if d.kind == "progress"][-1].processed == counted
        assert all(ping.ok for ping in await client.ping_all())


async def test_the_template_that_appends_gets_native_calls(llama: RealLlama) -> None:
    async with client_of(llama) as client:
        probe = await client.probe("action")
    assert probe.transport == "native_tools", probe.reason
    assert probe.trials[0].keeps


@pytest.mark.parametrize("name", SCHEMA_NAMES)
async def test_every_schema_constrains(llama: RealLlama, name: str) -> None:
    """The grammar is built, and whatever was finished is what the schema says."""
    schema = response_schema(name)
    async with client_of(llama) as client:
        person = Message("user", f"Repeat exactly this and nothing else: {json.dumps(minimal(schema))}")
        request = asked(person, limit=40, transport="json_schema", schema_name=name, schema=schema)
        reply = await client.chat(request, _ignore)
    assert reply.content.lstrip().startswith("{")
    first = schema["required"][0]
    begun = reply.content.lstrip("{ \n\t")
    assert not begun or begun.startswith(f'"{first}"')
    if reply.finish_reason == "stop":
        assert list(msgspec.json.decode(reply.content)) == schema["required"]


async def test_a_broken_schema_is_refused_by_name(llama: RealLlama) -> None:
    async with client_of(llama) as client:
        with pytest.raises(ModelRejected, match="'broken'"):
            await client.chat(asked(transport="json_schema", schema_name="broken", schema={"$ref": "#/no"}), _ignore)


def _step(number: int, arguments: str) -> tuple[Message, Message]:
    call = ToolCall(f"call{number:05d}", "list_dir", arguments)
    return Message("assistant", tool_calls=(call,)), Message("tool", f"file{number}.md", tool_call_id=call.id)


async def test_a_tool_loop_is_prefilled_only_where_it_is_new(llama: RealLlama) -> None:
    history: tuple[Message, ...] = (Message("system", "You are DuckLM. " * 20), PERSON)
    async with client_of(llama) as client:
        for step in range(2):
            reply = await client.chat(asked(*history, tools=native_tools(), transport="native_tools"), _ignore)
            if step:
                assert reply.timings.prompt_n < 100
                assert reply.timings.cache_n > 600
            history += _step(step, '{"path": "docs"}')
        answer = await client.chat(asked(*history, tools=native_tools()), _ignore)
    assert answer.timings.prompt_n < 100, "a role that may not call tools must see the same prompt"


async def test_a_call_that_was_cut_does_not_block_the_task(llama: RealLlama) -> None:
    async with client_of(llama) as client:
        reply = await client.chat(asked(PERSON, *_step(1, '{"path": "do'), tools=native_tools()), _ignore)
    assert reply.usage.completion_tokens > 0


async def test_half_surrogates_in_a_history_are_taken(llama: RealLlama) -> None:
    async with client_of(llama) as client:
        assert (await client.chat(asked(Message("user", "caf\ud83d")), _ignore)).usage.completion_tokens > 0


async def test_overflow(llama: RealLlama) -> None:
    async with client_of(llama) as client:
        with pytest.raises(ContextOverflow) as caught:
            await client.chat(asked(Message("user", "утка " * 3000)), _ignore)
    assert caught.value.context_tokens == 2048
    assert caught.value.prompt_tokens > 2048


async def test_cancelling_frees_the_slot(llama: RealLlama) -> None:
    headers = {"Authorization": f"Bearer {llama.api_key}"}
    async with client_of(llama) as client, httpx.AsyncClient(base_url=llama.url, headers=headers) as http:
        begun = asyncio.Event()
        request = asked(Message("user", "Write a very long story."), limit=1500)
        running = asyncio.create_task(client.chat(request, lambda d: begun.set() if d.kind == "content" else None))
        await asyncio.wait_for(begun.wait(), 60)
        started = time.monotonic()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        while any(slot["is_processing"] for slot in (await http.get("/slots")).json()):
            assert time.monotonic() - started < 1.0
            await asyncio.sleep(0.02)


async def test_a_stopped_process_is_noticed(llama: RealLlama) -> None:
    engine = llama.handle
    assert isinstance(engine, ManagedEngine)
    async with client_of(llama, idle=0.5) as client:
        await client.info("action")
        os.killpg(engine.pid, signal.SIGSTOP)
        try:
            with pytest.raises(ModelTimeout, match="stopped answering at all"):
                await client.chat(asked(Message("user", "hello")), _ignore)
        finally:
            os.killpg(engine.pid, signal.SIGCONT)

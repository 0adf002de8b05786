"""The real client against the scripted llama-server: every fault comes over a real connection."""

import asyncio
import time

import pytest

from adapters.llm import HttpModelClient, RetryPolicy, response_schema
from domain.directive import directive_schema, native_tools, parse_directive, parse_tool_calls
from domain.errors import (
    ContextOverflow,
    ModelError,
    ModelLoading,
    ModelProtocolError,
    ModelRejected,
    ModelTimeout,
    ModelUnavailable,
)
from domain.messages import Message
from domain.model import Delta, ModelReply, ModelRequest, RoleName
from domain.roles import ROLE_NAMES, RoleConfig
from tests.doubles.scripted_llama import (
    Reply,
    ScriptedLlama,
    act,
    calls,
    cut,
    done,
    drop,
    endless,
    hang,
    http_error,
    loading,
    malformed_body,
    malformed_chunk,
    only_reasoning,
    overflow,
    say,
    slow,
    stream_error,
    truncated,
)

pytestmark = pytest.mark.asyncio
FAST = RetryPolicy(attempts=3, loading_wait=2.0, base=0.01, ceiling=0.02)


def client_of(llama: ScriptedLlama, key: str = "", idle: float = 5.0, prefill: float = 10.0) -> HttpModelClient:
    roles: dict[RoleName, RoleConfig] = {name: RoleConfig(name, llama.url, "x", api_key=key) for name in ROLE_NAMES}
    return HttpModelClient(
        roles, idle_timeout=idle, prefill_timeout=prefill, ping_timeout=0.3, info_ttl=0.0, retries=FAST
    )


def asked(role: RoleName = "thinker", limit: int = 200) -> ModelRequest:
    messages = (Message("system", "You are DuckLM."), Message("user", "Привет, что в папке?"))
    return ModelRequest(role, "task-1", "call-1", messages, max_output_tokens=limit)


async def ask(llama: ScriptedLlama, request: ModelRequest | None = None) -> tuple[ModelReply, list[Delta]]:
    deltas: list[Delta] = []
    async with client_of(llama) as client:
        return await client.chat(request or asked(), deltas.append), deltas


async def test_a_whole_answer_with_reasoning_progress_usage_and_timings() -> None:
    async with ScriptedLlama() as llama:
        llama.push("thinker", say("Два файла.", reasoning="посмотрю список"))
        reply, deltas = await ask(llama)
        (request,) = llama.requests
    assert (reply.content, reply.reasoning, reply.finish_reason) == ("Два файла.", "посмотрю список", "stop")
    assert reply.model == "scripted.gguf"
    assert reply.usage.prompt_tokens == request.prompt_tokens > 0
    assert reply.timings.cache_n + reply.timings.prompt_n == request.prompt_tokens
    assert reply.usage.completion_tokens == request.tokens_sent
    kinds = [d.kind for d in deltas]
    assert kinds == sorted(kinds, key=["progress", "reasoning", "content"].index)
    progress = [d for d in deltas if d.kind == "progress"]
    assert progress[-1].processed == progress[-1].total == request.prompt_tokens
    assert request.body["metadata"] == {"role": "thinker", "task_id": "task-1", "call_id": "call-1"}


async def test_native_tool_calls_become_a_directive() -> None:
    async with ScriptedLlama() as llama:
        llama.push("action", act("list_dir", path="."), done())
        native = ModelRequest("action", "t", "c", asked().messages, "native_tools", native_tools())
        reply, deltas = await ask(llama, native)
        finished, _ = await ask(llama, native)
    directive = parse_tool_calls([(c.name, c.arguments) for c in reply.tool_calls])
    assert [(a.tool, a.arguments) for a in directive.actions] == [("list_dir", {"path": "."})]
    assert reply.finish_reason == "tool_calls"
    assert "list_dir" in "".join(d.text for d in deltas if d.kind == "tool_call")
    assert parse_tool_calls([(c.name, c.arguments) for c in finished.tool_calls]).done


async def test_the_same_directive_by_schema() -> None:
    async with ScriptedLlama(native_tools=False) as llama:
        llama.push("action", act("list_dir", path="."))
        schema = directive_schema()
        reply, _ = await ask(llama, ModelRequest("action", "t", "c", asked().messages, "json_schema", (), "d", schema))
        assert llama.requests[0].body["response_format"]["json_schema"]["strict"] is True
    assert parse_directive(reply.content).actions[0].tool == "list_dir"


async def test_odd_but_whole_answers_are_reported_as_they_are() -> None:
    async with ScriptedLlama() as llama:
        llama.push("thinker", only_reasoning("all in my head"), truncated('{"half'), calls(("list_dir", '{"path": ')))
        thoughts, _ = await ask(llama)
        half, _ = await ask(llama)
        broken, _ = await ask(llama)
    assert (thoughts.content, thoughts.reasoning) == ("", "all in my head")
    assert (half.content, half.finish_reason) == ('{"half', "length")
    assert broken.tool_calls[0].arguments == '{"path": '


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (cut(after=3), ModelProtocolError),
        (drop(after=3), ModelProtocolError),
        (malformed_chunk(after=2), ModelProtocolError),
        (stream_error(after=2), ModelUnavailable),
    ],
)
async def test_a_fault_after_tokens_were_shown_is_reported_and_not_retried(
    fault: Reply, kind: type[ModelError]
) -> None:
    async with ScriptedLlama() as llama:
        llama.push("thinker", fault)
        with pytest.raises(kind):
            await ask(llama)
        assert len(llama.requests) == 1


@pytest.mark.parametrize(
    "fault",
    [drop(after=0), cut(after=0), malformed_body(), http_error(502), http_error(503, "upstream"), http_error(500)],
)
async def test_a_fault_before_the_first_token_is_retried(fault: Reply) -> None:
    async with ScriptedLlama() as llama:
        llama.push("thinker", fault, say("at last"))
        reply, _ = await ask(llama)
        assert reply.content == "at last"
        assert len(llama.requests) == 2


async def test_retries_end() -> None:
    async with ScriptedLlama() as llama:
        llama.push("thinker", *[http_error(502)] * 5)
        with pytest.raises(ModelUnavailable, match="502"):
            await ask(llama)
        assert len(llama.requests) == FAST.attempts


async def test_a_loading_model_is_waited_for() -> None:
    async with ScriptedLlama(loading=True) as llama, client_of(llama) as client:
        with pytest.raises(ModelLoading):
            await client.info("thinker")
        asyncio.get_running_loop().call_later(0.2, setattr, llama.app, "loading", False)
        assert await client.transport("thinker") == "native_tools"
        llama.push("thinker", *[loading()] * 8, say("loaded"))
        assert (await client.chat(asked(), lambda _: None)).content == "loaded"


async def test_a_server_that_is_down_says_where_and_comes_back() -> None:
    async with ScriptedLlama() as llama, client_of(llama) as client:
        await llama.stop()
        with pytest.raises(ModelUnavailable, match=rf"Nothing answers at {llama.url}.*DUCKLM_LLAMA_URL"):
            await client.chat(asked(), lambda _: None)
        await llama.start()
        llama.push("thinker", say("back"))
        assert (await client.chat(asked(), lambda _: None)).content == "back"


async def test_overflow_has_its_figures_and_is_not_retried() -> None:
    async with ScriptedLlama() as llama:
        llama.push("thinker", overflow(6024, 4096))
        with pytest.raises(ContextOverflow) as caught:
            await ask(llama)
        assert (caught.value.prompt_tokens, caught.value.context_tokens) == (6024, 4096)
        assert len(llama.requests) == 1


async def test_refusals_carry_the_servers_words() -> None:
    async with ScriptedLlama(api_key="right") as llama:
        async with client_of(llama, "wrong") as client:
            with pytest.raises(ModelRejected, match="Invalid API Key"):
                await client.chat(asked(), lambda _: None)
        async with client_of(llama, "right") as client:
            llama.push("recall", http_error(400, "failed to parse grammar", "invalid_request_error"))
            schema = response_schema("recall_selection")
            request = ModelRequest("recall", "t", "c", asked().messages, "json_schema", (), "recall_selection", schema)
            with pytest.raises(ModelRejected, match=r"recall_selection.*failed to parse grammar"):
                await client.chat(request, lambda _: None)


async def test_silence_in_mid_answer_times_out() -> None:
    async with ScriptedLlama() as llama, client_of(llama, idle=0.2) as client:
        llama.push("thinker", hang(30, after=2))
        started = time.monotonic()
        with pytest.raises(ModelTimeout, match="in the middle"):
            await client.chat(asked(), lambda _: None)
        assert time.monotonic() - started < 3
        await llama.wait_until(lambda s: s.requests[0].disconnected)


async def test_pings_and_a_long_prefill_are_no_silence() -> None:
    async with ScriptedLlama() as llama, client_of(llama, idle=0.2) as client:
        llama.push("thinker", hang(0.7), hang(0.7, after=2, ping=0.05))
        assert (await client.chat(asked(), lambda _: None)).content == "late but whole"
        assert (await client.chat(asked(), lambda _: None)).content == "late but whole"


async def test_a_prefill_without_end_times_out() -> None:
    async with ScriptedLlama() as llama, client_of(llama, idle=0.1, prefill=0.4) as client:
        llama.push("thinker", hang(30))
        with pytest.raises(ModelTimeout, match="did not begin"):
            await client.chat(asked(), lambda _: None)


async def test_endless_tokens_are_cut_and_the_connection_closed() -> None:
    async with ScriptedLlama() as llama:
        llama.push("thinker", endless("word " * 50, token_delay=0.0))
        reply, _ = await ask(llama, asked(limit=10))
        assert reply.finish_reason == "length"
        assert len(reply.content) < 16 * 10 + 5000
        await llama.wait_until(lambda s: s.requests[0].disconnected)


@pytest.mark.parametrize("reply", [slow(say("word " * 500), 0.01), hang(30)], ids=["among tokens", "in prefill"])
async def test_cancelling_closes_the_connection_at_once(reply: Reply) -> None:
    async with ScriptedLlama() as llama, client_of(llama) as client:
        llama.push("thinker", reply)
        running = asyncio.create_task(client.chat(asked(limit=5000), lambda _: None))
        await llama.wait_until(lambda s: len(s.requests) == 1)
        await asyncio.sleep(0.1)
        started = time.monotonic()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await llama.wait_until(lambda s: s.requests[0].disconnected)
        assert time.monotonic() - started < 0.4


async def test_a_listener_that_fails_ends_the_request() -> None:
    def listener(_delta: Delta) -> None:
        raise ZeroDivisionError

    async with ScriptedLlama() as llama, client_of(llama) as client:
        llama.push("thinker", slow(say("word " * 500), 0.01))
        with pytest.raises(ZeroDivisionError):
            await client.chat(asked(limit=5000), listener)
        await llama.wait_until(lambda s: s.requests[0].disconnected)


async def test_properties_follow_a_changed_model() -> None:
    async with ScriptedLlama(n_ctx=8192, slots=3) as llama:
        roles: dict[RoleName, RoleConfig] = {"thinker": RoleConfig("thinker", llama.url, "x")}
        async with HttpModelClient(roles, info_ttl=3600.0, retries=FAST) as client:
            info = await client.info("thinker")
            assert (info.context_tokens, info.slots, info.model, info.native_tools) == (8192, 3, "scripted.gguf", True)
            llama.app.model, llama.app.n_ctx = "other.gguf", 4096
            assert (await client.info("thinker")).context_tokens == 8192
            await client.chat(asked(), lambda _: None)
            info = await client.info("thinker")
            assert (info.context_tokens, info.model) == (4096, "other.gguf")


async def test_the_transport_follows_the_template() -> None:
    async with ScriptedLlama() as native, client_of(native) as client:
        probe = await client.probe("action")
        assert (probe.transport, probe.trials[0].keeps) == ("native_tools", True)
    async with ScriptedLlama(native_tools=False) as plain, client_of(plain) as client:
        assert await client.transport("action") == "json_schema"


@pytest.mark.parametrize("own_counter", [True, False])
async def test_tokens_are_counted_by_the_server(own_counter: bool) -> None:
    async with ScriptedLlama(counts_input_tokens=own_counter) as llama, client_of(llama) as client:
        counted = await client.count_tokens("thinker", asked().messages)
        with_tools = await client.count_tokens("thinker", asked().messages, native_tools())
        await client.chat(asked(), lambda _: None)
        assert counted == llama.requests[0].prompt_tokens
    assert counted is not None
    assert with_tools is not None
    assert with_tools > counted


async def test_every_role_is_pinged_through_each_server_once() -> None:
    async with ScriptedLlama() as llama, client_of(llama) as client:
        pings = await client.ping_all()
        assert [(p.role, p.ok) for p in pings] == [(name, True) for name in ROLE_NAMES]
        assert {p.model for p in pings} == {"scripted.gguf"}
        assert all(p.latency_ms > 0 for p in pings)
        assert [r.body["max_tokens"] for r in llama.requests] == [1]
        llama.push("*", hang(30), http_error(502))
        busy = await client.ping("thinker")
        assert not busy.ok
        assert "busy" in busy.error
        assert "502" in (await client.ping("thinker")).error
        await llama.stop()
        assert all("Nothing answers" in p.error for p in await client.ping_all())

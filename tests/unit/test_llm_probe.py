"""The choice of a transport, on templates of each kind, rendered by a stand-in for ``/apply-template``."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from adapters.llm import HttpModelClient, RetryPolicy
from adapters.llm.probe import choose
from domain.model import ServerInfo, TransportProbe, Trial
from domain.roles import RoleConfig

pytestmark = pytest.mark.asyncio
Render = Callable[[list[dict[str, Any]]], str]


class TemplateError(Exception):
    """What a chat template raises."""


def _line(m: dict[str, Any], reasoning: str = "") -> str:
    calls = "".join(c["function"]["name"] + c["function"]["arguments"] for c in m.get("tool_calls", ()))
    return f"<{m['role']}>{reasoning}{m['content']}{calls}</>"


def append_only(messages: list[dict[str, Any]]) -> str:
    return "".join(map(_line, messages)) + "<assistant>"


def thinking_prefilled(messages: list[dict[str, Any]]) -> str:
    """Opens a think block for the next answer; closes it in history only where the reasoning is given back."""
    said = (_line(m, f"<think>{m['reasoning_content']}</think>" if "reasoning_content" in m else "") for m in messages)
    return "".join(said) + "<assistant><think>"


def native_breaks(messages: list[dict[str, Any]]) -> str:
    """Marks the last message when it is a tool result."""
    text = append_only(messages)
    native = any("tool_calls" in m for m in messages)
    return text + "[answer the tool]" if native and messages[-1]["role"] == "tool" else text


def no_tool_role(messages: list[dict[str, Any]]) -> str:
    if any(m["role"] == "tool" for m in messages):
        raise TemplateError("Jinja Exception: roles must alternate")
    return append_only(messages)


def forgets_tools(messages: list[dict[str, Any]]) -> str:
    return append_only([m for m in messages if m["role"] != "tool"])


def always_breaks(messages: list[dict[str, Any]]) -> str:
    return append_only(messages) + f"({len(messages)})"


class Server:
    """A llama-server as far as a probe needs it."""

    def __init__(self, render: Render | None, caps: bool = True) -> None:
        self.render = render
        self.caps = caps
        self.template = "one"
        self.rendered = 0
        self.loading_at = -1

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/props":
            caps = {"supports_tools": self.caps, "supports_tool_calls": self.caps}
            return httpx.Response(
                200, json={"model_alias": "m", "chat_template": self.template, "chat_template_caps": caps}
            )
        if request.url.path == "/apply-template" and self.render:
            self.rendered += 1
            if self.rendered == self.loading_at:
                return httpx.Response(503, json={"error": {"message": "Loading model", "type": "unavailable_error"}})
            try:
                return httpx.Response(200, json={"prompt": self.render(json.loads(request.content)["messages"])})
            except TemplateError as error:
                return httpx.Response(500, json={"error": {"message": str(error)}})
        return httpx.Response(404, json={"error": {"message": "File Not Found"}})


def _client(server: Server, info_ttl: float = 60.0) -> HttpModelClient:
    roles = {"action": RoleConfig("action", "http://m", "act"), "thinker": RoleConfig("thinker", "http://m", "think")}
    retries = RetryPolicy(base=0.0)
    return HttpModelClient(roles, retries=retries, transport=httpx.MockTransport(server), info_ttl=info_ttl)  # type: ignore[arg-type]


async def _probe(server: Server) -> TransportProbe:
    async with _client(server) as client:
        return await client.probe("action")


async def test_native_calls_where_the_template_only_appends() -> None:
    found = await _probe(Server(append_only))
    assert (found.transport, found.observations, found.send_reasoning) == ("native_tools", "tool", True)
    assert found.trials[0] == Trial("native_tools", "tool", False, (0, 0, 0), 0, 0)
    assert len(found.trials) == 6


async def test_reasoning_goes_back_where_only_that_keeps_the_prefix() -> None:
    found = await _probe(Server(thinking_prefilled))
    assert (found.transport, found.send_reasoning) == ("native_tools", True)
    without, with_reasoning = found.trials[:2]
    assert without.loop == (len("<think>"),) * 3
    assert without.final == len("<think>")
    assert with_reasoning.keeps


async def test_json_where_native_calls_break_the_prefix() -> None:
    found = await _probe(Server(native_breaks))
    assert (found.transport, found.observations) == ("json_schema", "tool")
    assert found.trials[0].loop == (0, 17, 17)
    assert "lose" in found.reason


async def test_observations_are_user_messages_where_there_is_no_tool_role() -> None:
    found = await _probe(Server(no_tool_role))
    assert (found.transport, found.observations) == ("json_schema", "user")
    assert "roles must alternate" in found.trials[0].problem
    assert "roles must alternate" in found.reason


async def test_a_template_that_swallows_tool_results_is_not_trusted() -> None:
    found = await _probe(Server(forgets_tools))
    assert (found.transport, found.observations) == ("json_schema", "user")
    assert found.trials[0].problem == "the template leaves out messages"


async def test_without_tool_calls_in_the_template_native_is_not_tried() -> None:
    found = await _probe(Server(append_only, caps=False))
    assert found.transport == "json_schema"
    assert found.reason == "the chat template has no tool calls"
    assert {t.transport for t in found.trials} == {"json_schema"}


async def test_without_apply_template_json_is_the_safe_choice() -> None:
    found = await _probe(Server(None))
    assert (found.transport, found.trials) == ("json_schema", ())
    assert "/apply-template" in found.reason


async def test_when_everything_breaks_the_smallest_loss_is_taken() -> None:
    found = await _probe(Server(always_breaks))
    assert found.transport == "json_schema"
    assert not any(trial.keeps for trial in found.trials)


async def test_a_template_is_probed_once_and_a_new_one_again() -> None:
    server = Server(append_only)
    async with _client(server, info_ttl=0.0) as client:
        assert await client.transport("action") == "native_tools"
        first = server.rendered
        assert await client.transport("thinker") == "native_tools"
        assert server.rendered == first
        server.template, server.render = "two", native_breaks
        assert await client.transport("action") == "json_schema"
        assert server.rendered == 2 * first


async def test_a_server_that_loads_in_mid_probe_is_asked_again() -> None:
    server = Server(append_only)
    server.loading_at = 3
    found = await _probe(server)
    assert found.transport == "native_tools"
    assert not any(trial.problem for trial in found.trials)


async def test_properties_are_read_leniently() -> None:
    async with _client(Server(append_only)) as client:
        info = await client.info("action")
    assert info == ServerInfo("http://m", "m", template_hash=info.template_hash, native_tools=True)
    assert len(info.template_hash) == 64


async def test_with_no_usable_trial_observations_are_user_messages() -> None:
    best, reasoning = choose((Trial("json_schema", "tool", False, problem="no"),))
    assert (best.transport, best.observations, reasoning) == ("json_schema", "user", False)

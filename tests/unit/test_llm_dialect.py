"""Request bodies and what is left out for stricter servers."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.llm.dialect import LLAMA_ONLY, Dialect, narrower, request_body, wire_messages
from adapters.llm.link import Link, base_url, encoded
from domain.directive import directive_schema, native_tools
from domain.messages import Message, ToolCall
from domain.model import ModelRequest

LLAMA = Dialect(llama=True)
ASKED = ModelRequest("action", "task-1", "call-1", (Message("user", "hi"),), max_output_tokens=77, temperature=0.2)


def test_every_request_streams_is_limited_and_says_whose_it_is() -> None:
    body = request_body(ASKED, LLAMA, "")
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True}
    assert (body["max_tokens"], body["temperature"]) == (77, 0.2)
    assert (body["return_progress"], body["cache_prompt"]) == (True, True)
    assert body["metadata"] == {"role": "action", "task_id": "task-1", "call_id": "call-1"}
    assert "model" not in body
    assert "tools" not in body
    assert request_body(ASKED, LLAMA, "big")["model"] == "big"


def test_native_tools_must_be_called() -> None:
    request = msgspec.structs.replace(ASKED, transport="native_tools", tools=native_tools())
    body = request_body(request, LLAMA, "")
    assert (body["tool_choice"], body["parallel_tool_calls"]) == ("required", True)
    assert body["tools"] == list(native_tools())
    assert request_body(request, Dialect(True, parallel_calls=False), "")["parallel_tool_calls"] is False


def test_other_roles_send_the_tool_list_for_the_cache_but_may_not_call() -> None:
    body = request_body(msgspec.structs.replace(ASKED, transport="text", tools=native_tools()), LLAMA, "")
    assert body["tool_choice"] == "none"
    assert "parallel_tool_calls" not in body


def test_a_schema_is_sent_strict_and_by_name() -> None:
    schema = directive_schema()
    request = msgspec.structs.replace(ASKED, transport="json_schema", schema_name="action_directive", schema=schema)
    assert request_body(request, LLAMA, "")["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "action_directive", "schema": schema, "strict": True},
    }


@pytest.mark.parametrize(
    ("said", "dropped"),
    [
        ("Unknown field: return_progress", LLAMA_ONLY),
        ("Unrecognized request argument supplied: cache_prompt", LLAMA_ONLY),
        (
            "[{'type': 'extra_forbidden', 'loc': ('body', 'metadata'), 'msg': 'Extra inputs are not permitted'}]",
            {"metadata"},
        ),
        ("The 'metadata' parameter is only allowed when 'store' is enabled.", {"metadata"}),
        ("Unsupported value: 'temperature' does not support 0.2 with this model.", {"temperature"}),
    ],
)
def test_a_refused_field_is_dropped(said: str, dropped: set[str]) -> None:
    adapted = narrower(LLAMA, 400, said)
    assert adapted is not None
    assert adapted.dropped == dropped
    assert not dropped & set(request_body(ASKED, adapted, ""))
    assert narrower(adapted, 400, said) is None


def test_the_newer_name_of_the_token_limit() -> None:
    said = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    adapted = narrower(LLAMA, 400, said)
    assert adapted is not None
    body = request_body(ASKED, adapted, "")
    assert body["max_completion_tokens"] == 77
    assert "max_tokens" not in body


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "messages is required"),
        (500, "unknown field return_progress"),
        (400, "unsupported role 'tool'"),
        (400, ""),
    ],
)
def test_other_refusals_change_nothing(status: int, said: str) -> None:
    assert narrower(LLAMA, status, said) is None


@pytest.mark.parametrize("arguments", ["{", "", "[]", '"text"', '{"a": "\\ud83d"}', '{"a": \ud83d}', "[" * 100_000])
def test_tool_arguments_that_are_no_object_are_sent_as_one(arguments: str) -> None:
    """llama-server answers 500 to them, and would to every later request of the task."""
    message = Message("assistant", tool_calls=(ToolCall("a", "one", arguments), ToolCall("b", "two", '{"x": 1}')))
    first, second = wire_messages((message,))[0]["tool_calls"]
    assert set(msgspec.json.decode(first["function"]["arguments"])) == {"invalid"}
    assert second["function"]["arguments"] == '{"x": 1}'


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.text(st.characters() | st.sampled_from("\ud83d\ude00")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(json_values)
def test_any_body_can_be_sent(value: Any) -> None:
    msgspec.json.decode(encoded({"value": value}))


@pytest.mark.parametrize("url", ["http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/v1/", " http://h:1/v1 "])
def test_a_pasted_address_is_trimmed(url: str) -> None:
    assert base_url(url) == "http://h:1"


async def _shown(url: str) -> str:
    link = Link(url, "", 1.0, None)
    await link.aclose()
    return link.shown


@pytest.mark.asyncio
async def test_credentials_in_an_address_are_not_shown() -> None:
    assert await _shown("https://me:secret@host:1/path") == "https://host:1/path"
    assert await _shown("http://[::1") == "http://[::1"

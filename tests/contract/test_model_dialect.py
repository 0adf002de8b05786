"""One set of assertions on llama-server's dialect, held against the scripted double and the real llama.cpp."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.doubles.real_llama import RealLlama
from tests.doubles.scripted_llama import ScriptedLlamaThread, act, calls, done, endless, say

CHAT = "/v1/chat/completions"
CONTEXT = 2048
TEMPLATE = Path(__file__).with_name("tools_template.jinja")
PING = [{"role": "user", "content": "Count from one to nine in words."}]
SCHEMA = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}, "n": {"type": "integer", "minimum": 1, "maximum": 9}},
    "required": ["ok", "n"],
    "additionalProperties": False,
}


def tool(name: str, *fields: str) -> dict[str, Any]:
    """A tool with text arguments."""
    schema = {
        "type": "object",
        "properties": {field: {"type": "string"} for field in fields},
        "required": list(fields),
        "additionalProperties": False,
    }
    return {"type": "function", "function": {"name": name, "description": name, "parameters": schema}}


TOOLS = [tool("list_dir", "path"), tool("finish", "intent")]


@dataclass
class Subject:
    """A server under test; ``double`` is None for the real one."""

    http: httpx.Client
    double: ScriptedLlamaThread | None

    def scripted(self, *answers: Any) -> None:
        """What the double is to answer; the real one answers as it likes."""
        if self.double is not None:
            self.double.push("*", *answers)

    def post(self, path: str, body: dict[str, Any]) -> httpx.Response:
        """One request."""
        return self.http.post(path, json=body)

    def stream(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        """All chunks of a stream, which must end with ``[DONE]``."""
        with self.http.stream("POST", CHAT, json={"temperature": 0, **body, "stream": True}) as answer:
            assert answer.status_code == 200
            assert answer.headers["content-type"].startswith("text/event-stream")
            lines = [line.removeprefix("data: ") for line in answer.iter_lines() if line and not line.startswith(":")]
        assert lines[-1] == "[DONE]"
        return [json.loads(line) for line in lines[:-1]]


@pytest.fixture(scope="module", params=["double", pytest.param("real", marks=pytest.mark.llama)])
def subject(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Subject]:
    if request.param == "double":
        with ScriptedLlamaThread(n_ctx=CONTEXT, api_key="key") as double:
            double.default("*", say("one two three four five six seven eight nine"))
            with client(double.url, "key") as http:
                yield Subject(http, double)
    else:
        # a template with tools: the small model brings none
        extra = ("--chat-template-file", str(TEMPLATE), "--sse-ping-interval", "1")
        home = tmp_path_factory.mktemp("home")
        with (
            RealLlama(home, context_tokens=CONTEXT, extra_args=extra) as real,
            client(real.url, real.api_key) as http,
        ):
            yield Subject(http, None)


def client(url: str, key: str) -> httpx.Client:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    # the real server closes the connection after each stream, and idle ones after 5 s, without saying so before
    limits = httpx.Limits(max_keepalive_connections=0)
    return httpx.Client(base_url=url, headers=headers, timeout=120, trust_env=False, limits=limits)


def deltas(chunks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]


def idle(subject: Subject) -> bool:
    return not any(slot["is_processing"] for slot in subject.http.get("/slots").json())


def check_error(answer: httpx.Response, status: int, kind: str) -> dict[str, Any]:
    """The error object, after a look at what every one has."""
    assert answer.status_code == status
    error: dict[str, Any] = answer.json()["error"]
    assert (error["code"], error["type"]) == (status, kind)
    assert error["message"]
    return error


def test_health(subject: Subject) -> None:
    assert subject.http.get("/health").json() == {"status": "ok"}


def test_props(subject: Subject) -> None:
    props = subject.http.get("/props").json()
    assert props["total_slots"] == 2
    assert props["default_generation_settings"]["n_ctx"] == CONTEXT
    assert props["chat_template_caps"]["supports_tool_calls"] is True
    assert all(isinstance(props[name], str) for name in ("chat_template", "model_path", "model_alias", "build_info"))
    assert props["chat_template"]


def test_models(subject: Subject) -> None:
    entries = subject.http.get("/v1/models").json()["data"]
    assert [entry["id"] for entry in entries] == [subject.http.get("/props").json()["model_alias"]]


def test_stream_with_usage(subject: Subject) -> None:
    chunks = subject.stream({"messages": PING, "max_tokens": 12, "stream_options": {"include_usage": True}})
    assert len({chunk["id"] for chunk in chunks}) == 1
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    first, *middle, finish = deltas(chunks)
    assert first == {"role": "assistant", "content": None}
    assert all(set(delta) == {"content"} for delta in middle)
    assert finish == {}
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks[:-1]] == [None] * (len(chunks) - 2) + ["length"]
    last = chunks[-1]
    assert last["choices"] == []
    usage, timings = last["usage"], last["timings"]
    assert usage["completion_tokens"] == timings["predicted_n"] == 12
    assert usage["prompt_tokens"] == timings["cache_n"] + timings["prompt_n"]
    assert usage["prompt_tokens_details"]["cached_tokens"] == timings["cache_n"]
    assert {"prompt_ms", "predicted_ms", "predicted_per_second"} <= set(timings)


def test_timings_ride_in_the_finish_chunk_without_usage(subject: Subject) -> None:
    chunks = subject.stream({"messages": PING, "max_tokens": 3})
    assert chunks[-1]["choices"][0]["finish_reason"] == "length"
    assert "usage" not in chunks[-1]
    assert chunks[-1]["timings"]["predicted_n"] == 3


def test_prefill_progress(subject: Subject) -> None:
    question = [{"role": "user", "content": "A prompt that nobody has asked before, with many a word to evaluate."}]
    chunks = subject.stream({"messages": question, "max_tokens": 2, "return_progress": True})
    progress = [chunk["prompt_progress"] for chunk in chunks if "prompt_progress" in chunk]
    assert progress
    assert ["prompt_progress" in chunk for chunk in chunks[: len(progress)]] == [True] * len(progress)
    assert progress[-1]["processed"] == progress[-1]["total"]
    assert [p["processed"] for p in progress] == sorted(p["processed"] for p in progress)
    assert all(set(p) == {"total", "cache", "processed", "time_ms"} for p in progress)


def test_whole_answer(subject: Subject) -> None:
    answer = subject.post(CHAT, {"messages": PING, "max_tokens": 5, "temperature": 0}).json()
    (choice,) = answer["choices"]
    assert choice["finish_reason"] == "length"
    assert choice["message"]["role"] == "assistant"
    assert choice["message"]["content"]
    assert answer["object"] == "chat.completion"
    assert answer["usage"]["completion_tokens"] == answer["timings"]["predicted_n"] == 5


def test_appended_messages_reuse_the_cache(subject: Subject) -> None:
    head = [{"role": "user", "content": "Tell me about ducks and ponds, and reeds, and rain. " * 8}]
    first = subject.post(CHAT, {"messages": head, "max_tokens": 4, "temperature": 0}).json()
    reply = first["choices"][0]["message"]
    longer = [*head, {"role": "assistant", "content": reply["content"]}, {"role": "user", "content": "And geese?"}]
    second = subject.post(CHAT, {"messages": longer, "max_tokens": 4, "temperature": 0}).json()
    assert second["timings"]["cache_n"] > 0.9 * first["usage"]["prompt_tokens"]
    other = subject.post(CHAT, {"messages": [{"role": "user", "content": "Else"}], "max_tokens": 1}).json()
    assert other["timings"]["cache_n"] < 0.9 * other["usage"]["prompt_tokens"] + 8


def test_exact_counts(subject: Subject) -> None:
    body = {"messages": PING, "tools": TOOLS}
    counted = subject.post(CHAT + "/input_tokens", body).json()["input_tokens"]
    prompt = subject.post("/apply-template", body).json()["prompt"]
    tokens = subject.post("/tokenize", {"content": prompt, "add_special": True, "parse_special": True}).json()["tokens"]
    used = subject.post(CHAT, {**body, "max_tokens": 1}).json()["usage"]["prompt_tokens"]
    assert counted == len(tokens) == used


def test_schema(subject: Subject) -> None:
    subject.scripted(say('{"ok": true, "n": 3}'))
    wanted = {"type": "json_schema", "json_schema": {"name": "probe", "schema": SCHEMA}}
    body = {"messages": PING, "max_tokens": 80, "temperature": 0, "response_format": wanted}
    value = json.loads(subject.post(CHAT, body).json()["choices"][0]["message"]["content"])
    assert set(value) == {"ok", "n"}
    assert isinstance(value["ok"], bool)
    assert 1 <= value["n"] <= 9


def tool_history(rounds: int) -> list[dict[str, Any]]:
    """A talk in which every answer is a call: so the small model makes another one."""
    out: list[dict[str, Any]] = []
    for index in range(rounds):
        function = {"name": "list_dir", "arguments": json.dumps({"path": f"folder{index}"})}
        out += [
            {"role": "user", "content": f"List folder{index}"},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": f"c{index}", "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": f"c{index}", "content": "a.txt"},
        ]
    return [*out, {"role": "user", "content": f"List folder{rounds}"}]


TOOL_BODY = {
    "messages": tool_history(4),
    "tools": TOOLS,
    "tool_choice": "required",
    "parallel_tool_calls": False,
    "stop": ["</tool_call>"],  # the template's end of turn is none to the small model: it would go on calling
    "max_tokens": 60,
    "temperature": 0,
}


def test_native_call_whole(subject: Subject) -> None:
    subject.scripted(calls(("list_dir", {"path": "folder4"})))
    (choice,) = subject.post(CHAT, TOOL_BODY).json()["choices"]
    assert choice["finish_reason"] == "tool_calls"
    call = choice["message"]["tool_calls"][0]
    assert call["type"] == "function"
    assert call["id"]
    assert call["function"]["name"] == "list_dir"
    assert "path" in json.loads(call["function"]["arguments"])


def test_native_call_streamed(subject: Subject) -> None:
    subject.scripted(calls(("list_dir", {"path": "folder4"})))
    chunks = subject.stream(TOOL_BODY)
    pieces = [piece for delta in deltas(chunks) for piece in delta.get("tool_calls", ())]
    head = pieces[0]
    assert (head["index"], head["type"], head["function"]["name"]) == (0, "function", "list_dir")
    assert head["id"]
    assert all("id" not in piece and "name" not in piece["function"] for piece in pieces[1:] if piece["index"] == 0)
    text = "".join(piece["function"]["arguments"] for piece in pieces if piece["index"] == 0)
    assert "path" in json.loads(text)
    assert [c["choices"][0]["finish_reason"] for c in chunks if c["choices"]][-1] == "tool_calls"


def test_broken_json(subject: Subject) -> None:
    answer = subject.http.post(CHAT, content=b'{"messages": [', headers={"content-type": "application/json"})
    assert "parse error" in check_error(answer, 400, "invalid_request_error")["message"]


@pytest.mark.parametrize("body", [{}, {"messages": "text"}])
def test_bad_messages(subject: Subject, body: dict[str, Any]) -> None:
    assert "messages" in check_error(subject.post(CHAT, body), 400, "invalid_request_error")["message"]


def test_overflow(subject: Subject) -> None:
    messages = [{"role": "user", "content": "duck " * (CONTEXT + 100)}]
    error = check_error(subject.post(CHAT, {"messages": messages}), 400, "exceed_context_size_error")
    assert error["n_ctx"] == CONTEXT
    assert error["n_prompt_tokens"] > CONTEXT


def test_no_such_path(subject: Subject) -> None:
    check_error(subject.http.get("/no/such/path"), 404, "not_found_error")


def test_key(subject: Subject) -> None:
    check_error(subject.http.get("/props", headers={"Authorization": "Bearer wrong"}), 401, "authentication_error")
    assert subject.http.get("/health", headers={"Authorization": ""}).status_code == 200


def test_leaving_frees_the_slot(subject: Subject) -> None:
    subject.scripted(endless())
    body = {"messages": PING, "stream": True, "ignore_eos": True, "max_tokens": 1500}
    with subject.http.stream("POST", CHAT, json=body) as answer:
        lines = (line for line in answer.iter_lines() if line)
        for _ in range(4):
            next(lines)
        assert not idle(subject)
    deadline = time.monotonic() + 60
    while not idle(subject) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert idle(subject)
    if subject.double is not None:
        assert subject.double.requests[-1].disconnected


def test_an_unknown_slot_is_taken_for_any(subject: Subject) -> None:
    body = {"messages": PING, "max_tokens": 1, "id_slot": 1}
    assert subject.post(CHAT, body).status_code == 200
    assert subject.post(CHAT, {**body, "id_slot": 99}).status_code == 200


def test_directives_take_the_transport_of_the_request() -> None:
    with ScriptedLlamaThread() as double, client(double.url, "") as http:
        double.push("action", act("list_dir", path="."), done("enough"), act("list_dir", path="."))
        body = {"messages": PING, "metadata": {"role": "action"}}
        native = [http.post(CHAT, json={**body, "tools": TOOLS}).json()["choices"][0]["message"] for _ in range(2)]
        plain = http.post(CHAT, json=body).json()["choices"][0]["message"]
    names = [[call["function"]["name"] for call in message["tool_calls"]] for message in native]
    assert names == [["list_dir"], ["finish"]]
    assert json.loads(plain["content"])["actions"] == [{"tool": "list_dir", "arguments": {"path": "."}}]


def test_loading_double() -> None:
    with ScriptedLlamaThread(loading=True) as double, client(double.url, "") as http:
        check_error(http.get("/health"), 503, "unavailable_error")
        check_error(http.post(CHAT, json={"messages": PING}), 503, "unavailable_error")
        double.llama.app.loading = False
        assert http.get("/health").status_code == 200
